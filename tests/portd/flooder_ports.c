/* SPDX-License-Identifier: BSD-2-Clause */
/* Attacks by port numbers: see flooder.h. */
#include "tests/portd/flooder.h"

#include <rdma/rdma_cma.h>
#include <sched.h>

#include "lib/portd/client/portd_requests.h"
#include "lib/portd/proto/datagram.h"

#define PAGE_PORTS 16
#define FIRST_PORT 1024
#define N_PORTS	   65536

static const uint16_t spaces[] = { RDMA_PS_IPOIB, RDMA_PS_TCP, RDMA_PS_UDP, RDMA_PS_IB };

static bool send_one(int fd, const struct portd_record *record)
{
	struct portd_datagram out = { .bytes = 0 };

	portd_put(&out, record);
	return !portd_datagram_send(fd, &out, NULL, 0);
}

/* One port of each page of cmportd's tables, one after the other. */
static bool touch_pages(int fd, uint16_t ps)
{
	struct portd_record bind = { .type = PORTD_BIND }, release = { .type = PORTD_RELEASE };
	unsigned int port;
	char answer;

	for (port = FIRST_PORT; port < N_PORTS; port += PAGE_PORTS) {
		bind.claim = (struct portd_claim){
			.claim_id = 1, .ps = ps, .local_family = 4, .local_port = (uint16_t)port
		};
		release.claim = bind.claim;
		if (!send_one(fd, &bind) || !send_one(fd, &release) ||
		    recv(fd, &answer, sizeof(answer), 0) <= 0)
			return false;
	}
	return true;
}

bool fill_a_namespace(void)
{
	static bool is_root_there;
	struct portd_client *guest; /* stays connected */
	struct portd_ids its;
	struct portd_why why;
	unsigned int i;

	if (!is_root_there && unshare(CLONE_NEWUSER))
		return false;
	is_root_there = true;
	if (unshare(CLONE_NEWNET) || portd_client_open(&guest, &its, &why))
		return false;
	for (i = 0; i < sizeof(spaces) / sizeof(spaces[0]); i++)
		if (!touch_pages(guest->control_fd, spaces[i]))
			return false;
	return true;
}
