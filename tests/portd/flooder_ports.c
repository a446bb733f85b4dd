/* SPDX-License-Identifier: BSD-2-Clause */
/* What a flooder does with port numbers: see flooder.h. */
#include "tests/portd/flooder.h"

#include <rdma/rdma_cma.h>
#include <sched.h>

#include "lib/portd/client/request.h"
#include "lib/portd/proto/datagram.h"

#define PAGE_PORTS 16
#define FIRST_PORT 1024
#define N_PORTS	   65536
#define AT_ONCE	   16

static const uint16_t spaces[] = { RDMA_PS_IPOIB, RDMA_PS_TCP, RDMA_PS_UDP, RDMA_PS_IB };

/* One port of each page of cmportd's tables, one after the other. */
static bool touch_pages(int fd, uint16_t ps)
{
	struct portd_record bind = { .type = PORTD_BIND }, release = { .type = PORTD_RELEASE };
	unsigned int port = FIRST_PORT, n;
	struct portd_datagram out;

	while (port < N_PORTS) {
		out.bytes = 0;
		for (n = 0; n < AT_ONCE && port < N_PORTS; n++, port += PAGE_PORTS) {
			bind.claim = (struct portd_claim){ .claim_id = 1,
							   .ps = ps,
							   .local_family = 4,
							   .local_port = (uint16_t)port };
			release.claim = bind.claim;
			portd_put(&out, &bind);
			portd_put(&out, &release);
		}
		if (!send_and_await(fd, &out, n))
			return false;
	}
	return true;
}

bool fill_a_namespace(void)
{
	static bool is_root_there;
	struct portd_client *guest; /* stays */
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
