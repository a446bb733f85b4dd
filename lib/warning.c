/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The texts of all warnings: see warning.h.
 */
#include "lib/warning.h"

#include <string.h>

#include "lib/log.h"

static const char no_memory[] = "out of memory: ";

/* clang-format off */
static const char *const lies[SOCKET_N_LIES] = {
	[SOCKET_LIE_DATA] = "data that was not allowed",
	[SOCKET_LIE_CREDIT] = "credit that it cannot have",
	[SOCKET_LIE_HALF] = "a half of its buffer that was not used up",
	[SOCKET_LIE_INDEX] = "a buffer beyond the table",
	[SOCKET_LIE_CONTROL] = "an unknown control message",
	[SOCKET_LIE_OPERATION] = "an operation that does not exist",
};
/* clang-format on */

void warning_of_device(const char *device, int err)
{
	log_warn("RDMA device %s cannot be opened: %s; see that /dev/infiniband/uverbs* is "
		 "readable and writable",
		 device, strerror(-err));
}

void warning_of_port(const char *device, uint8_t port_num, int err, const char *what,
		     const char *remedy)
{
	log_warn("%s port %u: no CM messages can be sent or received: %s%s%s%s%s", device, port_num,
		 strerror(-err), what[0] ? ": " : "", what, remedy[0] ? "; " : "", remedy);
}

void warning_of_port_lost(const char *device, uint8_t port_num, int err)
{
	log_warn("%s port %u is lost: %s", device, port_num, strerror(-err));
}

void warning_of_removal(const char *device)
{
	log_warn("RDMA device %s is gone", device);
}

void warning_of_cmportd(const char *why, int err)
{
	log_warn("%s%s%s", why, why[0] ? ": " : "", strerror(-err));
}

void warning_of_cmportd_lost(int err)
{
	log_warn("cmportd is gone, and there is no other: %s", strerror(-err));
}

void warning_of_claim(uint16_t port, int err)
{
	log_warn("port %u is lost: %s", port, strerror(-err));
}

void warning_of_wills(void)
{
	log_warn("%scmportd is not told of this program's connections", no_memory);
}

void warning_of_requests(void)
{
	log_warn("%sa connection request may be dropped", no_memory);
}

void warning_of_event(enum rdma_cm_event_type type)
{
	log_warn("%s%s of an id is lost", no_memory, rdma_event_str(type));
}

void warning_of_new_id(int err)
{
	log_warn("a new id cannot be shown its device and path: %s", strerror(-err));
}

void warning_of_queue_pair(uint32_t qp_num, int state, int err)
{
	log_warn("queue pair 0x%06x cannot be moved to state %d: %s", qp_num, state,
		 strerror(-err));
}

void warning_of_ibacm(int err)
{
	log_warn("ibacm is of no use and not asked again: %s", strerror(-err));
}

void warning_of_peer(int fd, enum socket_lie lie, uint32_t message)
{
	log_warn("socket %d: the peer is cut off: %s (message 0x%08x)", fd, lies[lie], message);
}

void warning_of_variable(const char *name, const char *text)
{
	log_warn("%s: %s makes no sense and is as if it were not set", name, text);
}
