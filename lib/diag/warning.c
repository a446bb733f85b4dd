/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The texts of all warnings: see warning.h.
 */
#include "lib/diag/warning.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "base/log.h"

static const char no_memory[] = "out of memory: ";

/* clang-format off */
static const char *const lies[SOCKET_N_LIES] = {
	[SOCKET_LIE_DATA] = "data beyond its credit",
	[SOCKET_LIE_CREDIT] = "an impossible credit",
	[SOCKET_LIE_HALF] = "a new half of its buffer before the last one was used up",
	[SOCKET_LIE_INDEX] = "an index beyond the table of buffers",
	[SOCKET_LIE_CONTROL] = "an unknown control message",
	[SOCKET_LIE_OPERATION] = "an unknown operation",
};

static const char *const qp_states[] = {
	[IBV_QPS_RESET] = "RESET",
	[IBV_QPS_INIT] = "INIT",
	[IBV_QPS_RTR] = "RTR",
	[IBV_QPS_RTS] = "RTS",
	[IBV_QPS_SQD] = "SQD",
	[IBV_QPS_SQE] = "SQE",
	[IBV_QPS_ERR] = "ERR",
};
/* clang-format on */

void warning_of_device(const char *device, int err)
{
	log_warn("RDMA device %s cannot be opened: %s; /dev/infiniband/uverbs* must be readable "
		 "and writable",
		 device, strerror(-err));
}

void warning_of_no_device(void)
{
	static bool is_logged; /* atomic */

	if (!__atomic_exchange_n(&is_logged, true, __ATOMIC_RELAXED))
		log_warn("there is no RDMA device; purecm doctor names a way to one");
}

/* The port of a bound id is opened repeatedly, so a warning is logged once. */
void warning_of_port(const char *device, uint8_t port_num, int err, const char *what,
		     const char *remedy)
{
	static uint32_t latest; /* atomic */
	char text[512];
	uint32_t hash;

	snprintf(text, sizeof(text),
		 "%s port %u: no CM messages can be sent or received: %s%s%s%s%s", device, port_num,
		 strerror(-err), what[0] ? ": " : "", what, remedy[0] ? "; " : "", remedy);
	hash = (uint32_t)hash_bytes(text, strlen(text));
	if (__atomic_exchange_n(&latest, hash, __ATOMIC_RELAXED) != hash)
		log_warn("%s", text);
}

void warning_of_port_lost(const char *device, uint8_t port_num, int err)
{
	log_warn("%s port %u can no longer be used: %s", device, port_num, strerror(-err));
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
	log_warn("cmportd has ended and no other one can be used: %s", strerror(-err));
}

void warning_of_claim(uint16_t port, int err)
{
	log_warn("this program has lost port number %u: %s", port, strerror(-err));
}

void warning_of_untracked(void)
{
	log_warn("%sthis program's connections are not reported to cmportd", no_memory);
}

void warning_of_requests(void)
{
	log_warn("%sa connection request may be dropped", no_memory);
}

void warning_of_event(enum rdma_cm_event_type type)
{
	log_warn("%sthe event %s is lost", no_memory, rdma_event_str(type));
}

void warning_of_new_id(int err)
{
	log_warn("cannot attach the device and path to the new cm_id: %s", strerror(-err));
}

void warning_of_queue_pair(uint32_t qp_num, enum ibv_qp_state state, int err)
{
	log_warn("queue pair 0x%06x cannot be moved to %s: %s", qp_num, qp_states[state],
		 strerror(-err));
}

void warning_of_no_queue_pair(const struct ibv_qp_cap *cap, const struct ibv_device_attr *attr,
			      int err)
{
	log_warn("no queue pair of %u and %u requests to send and receive, with %u and %u entries: "
		 "%s; the device allows %d requests, %d entries and %d queue pairs",
		 cap->max_send_wr, cap->max_recv_wr, cap->max_send_sge, cap->max_recv_sge,
		 strerror(-err), attr->max_qp_wr, attr->max_sge, attr->max_qp);
}

void warning_of_private_data(size_t bytes, size_t room)
{
	log_warn("private data of %zu bytes: the message has room for %zu", bytes, room);
}

void warning_of_failure(const char *text)
{
	log_warn("%s", text);
}

void warning_of_ibacm(int err)
{
	log_warn("ibacm gave no valid answer and is not queried again: %s", strerror(-err));
}

void warning_of_peer(int fd, enum socket_lie lie, uint32_t message)
{
	log_warn("socket %d: disconnected, because the peer sent %s (message 0x%08x)", fd,
		 lies[lie], message);
}

void warning_of_tcp(const char *host, const char *port, const char *why)
{
	log_warn("preload: TCP to %s port %s: %s", host, port, why);
}

void warning_of_tcp_listener(int fd, int err)
{
	log_warn("preload: descriptor %d listens over TCP only in this process: %s", fd,
		 strerror(-err));
}

void warning_of_lost(const char *call)
{
	log_warn("preload: the connections that this process has made or accepted end at %s()",
		 call);
}

void warning_of_variable(const char *name, const char *text)
{
	log_warn("%s: the invalid value %s is ignored", name, text);
}
