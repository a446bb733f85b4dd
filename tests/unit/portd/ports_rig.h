/* SPDX-License-Identifier: BSD-2-Clause */
/* Ports of two clients, for the tests of lib/portd/server/ports/ports.c. */
#ifndef TESTS_UNIT_PORTD_PORTS_RIG_H
#define TESTS_UNIT_PORTD_PORTS_RIG_H

#include <arpa/inet.h>
#include <rdma/rdma_cma.h>
#include <string.h>

#include "mad/cma_hdr.h"
#include "lib/portd/server/ports/ports.h"
#include "tests/unit/portd/claims.h"
#include "tests/unit/test.h"

#define PORT   7174
#define FIRST  40000
#define LAST   40099
#define BESIDE UINT64_C(6) /* the ports of handles 1 and 2 belong to one device */
#define ANY    "0.0.0.0"
#define HOST   "10.0.0.1"
#define OTHER  "10.0.0.2"

static struct ports *ports;

static inline void set_up(void)
{
	struct port_limits limits = { .ephemeral_first = FIRST,
				      .ephemeral_last = LAST,
				      .unprivileged_first = 1024 };

	ports = ports_new(&limits, 1);
	ck_assert_ptr_nonnull(ports);
}

static inline void tear_down(void)
{
	ports_free(ports);
}

static inline int bind_on(uint16_t client, uint32_t claim_id, const char *addr, uint16_t port)
{
	struct portd_claim claim = claim_on(claim_id, addr, port);
	uint16_t got;
	int err = ports_bind(ports, client, &claim, &got);

	if (!err && port)
		ck_assert_uint_eq(got, port);
	return err;
}

static inline int listen_on(uint16_t client, uint32_t claim_id, const char *addr)
{
	struct portd_claim claim = claim_on(claim_id, addr, PORT);

	return ports_listen(ports, client, &claim);
}

static inline struct cm_req req_to(const char *addr)
{
	struct cma_hdr hdr = { .ip_version = 4, .src_port = 1 };
	struct cm_req req = { .service_id = cma_service_id(RDMA_PS_TCP, PORT) };

	inet_pton(AF_INET, addr, hdr.dst_addr + 12);
	wire_encode(&cma_hdr_layout, &hdr, req.private_data);
	return req;
}

static inline uint16_t listener_on(const struct cm_req *req, unsigned int ifindex)
{
	const struct ports_request request = { .service_id = req->service_id,
					       .data = req->private_data,
					       .handles = BESIDE,
					       .ifindex = ifindex };

	return ports_listener(ports, &request);
}

static inline uint16_t listener_of(const struct cm_req *req)
{
	return listener_on(req, 0);
}

#endif
