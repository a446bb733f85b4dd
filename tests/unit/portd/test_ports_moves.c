/* SPDX-License-Identifier: BSD-2-Clause */
/* Changes of claims: one client tries to get the port that another listens on. */
#include <errno.h>

#include "tests/unit/portd/ports_rig.h"

FIXTURE(set_up, tear_down);

#define LINK_LOCAL "fe80::1"

static struct portd_claim claim_on_ipv6(const char *addr, uint32_t scope)
{
	struct portd_claim claim = {
		.claim_id = 1, .ps = RDMA_PS_TCP, .local_family = 6, .local_port = PORT
	};

	inet_pton(AF_INET6, addr, claim.local_addr);
	claim.local_scope = scope;
	claim.afonly = 1;
	return claim;
}

/* The second client changes its claim on OTHER after the first listens on HOST. */
static const struct {
	const char *addr;
	bool by_listening;
} moves[] = {
	{ HOST, false },
	{ ANY, false },
	{ HOST, true },
	{ ANY, true },
};

TEST_LOOP(a_claim_cannot_move_to_another_clients_listener, 0, sizeof(moves) / sizeof(moves[0]))
{
	struct portd_claim claim = claim_on(1, moves[_i].addr, PORT);
	struct cm_req req = req_to(HOST);

	bind_on(1, 1, HOST, PORT);
	ck_assert_int_eq(listen_on(1, 1, HOST), 0);
	bind_on(2, 1, OTHER, PORT);
	if (moves[_i].by_listening)
		ck_assert_int_eq(ports_listen(ports, 2, &claim), -EADDRINUSE);
	ck_assert_int_eq(listen_on(2, 1, OTHER), 0);
	if (!moves[_i].by_listening)
		ports_update(ports, 2, &claim);
	ck_assert_uint_eq(listener_of(&req), 1);
}

/* A port for both families would have conflicted with the listener. */
TEST(a_claim_on_one_family_cannot_become_one_on_both)
{
	struct portd_claim claim = claim_on_ipv6("::", 0);
	struct cm_req req = req_to(HOST);
	uint16_t port;

	bind_on(1, 1, ANY, PORT);
	ck_assert_int_eq(listen_on(1, 1, ANY), 0);
	ck_assert_int_eq(ports_bind(ports, 2, &claim, &port), 0);
	ck_assert_int_eq(ports_listen(ports, 2, &claim), 0);
	claim.afonly = 0;
	ports_update(ports, 2, &claim);
	ck_assert_uint_eq(listener_of(&req), 1);
}

TEST(a_wildcard_claim_can_become_specific)
{
	struct cm_req req = req_to(HOST), other = req_to(OTHER);
	struct portd_claim claim = claim_on(1, HOST, PORT);

	bind_on(1, 1, ANY, PORT);
	ports_update(ports, 1, &claim);
	ck_assert_int_eq(listen_on(1, 1, HOST), 0);
	ck_assert_uint_eq(listener_of(&req), 1);
	ck_assert_uint_eq(listener_of(&other), PORTS_NOT_FOR_THEM);
}

/* The same address on an interface that may not exist. */
TEST(a_link_local_listener_gets_requests_of_its_interface_only)
{
	struct portd_claim claim = claim_on_ipv6(LINK_LOCAL, 2);
	struct cma_hdr hdr = { .ip_version = 6, .src_port = 1 };
	struct cm_req req = { .service_id = cma_service_id(RDMA_PS_TCP, PORT) };
	uint16_t port;

	inet_pton(AF_INET6, LINK_LOCAL, hdr.dst_addr);
	wire_encode(&cma_hdr_layout, &hdr, req.private_data);
	ck_assert_int_eq(ports_bind(ports, 1, &claim, &port), 0);
	ck_assert_int_eq(ports_listen(ports, 1, &claim), 0);
	claim.local_scope = 99;
	ck_assert_int_eq(ports_bind(ports, 2, &claim, &port), 0);
	ck_assert_int_eq(ports_listen(ports, 2, &claim), 0);
	ck_assert_uint_eq(listener_on(&req, 2), 1);
}
