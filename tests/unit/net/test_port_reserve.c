/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Ports that are reserved without a claim (lib/net/port_space.h): claims that conflict with them.
 */
#include <errno.h>
#include <rdma/rdma_cma.h>
#include <stdlib.h>

#include "lib/net/port_space.h"
#include "tests/unit/net/netns.h"
#include "tests/unit/test.h"

#define N_PORTS 10
#define FIRST	40000
#define LAST	40009
#define A_PORT	40003

static struct port_space space;

static void setup(void)
{
	struct port_limits limits = { .ephemeral_first = FIRST,
				      .ephemeral_last = LAST,
				      .unprivileged_first = 1024 };

	port_space_init(&space, &limits, 1);
}

static void teardown(void)
{
	port_space_fini(&space);
}

static struct port_claim claim(const char *address, uint16_t port)
{
	struct port_claim c = { .ps = RDMA_PS_TCP, .local = ip(address) };

	addr_set_port(&c.local, port);
	return c;
}

#define MARK 0x80000001

FIXTURE(setup, teardown);

TEST(reserved_port_conflicts_like_a_wildcard)
{
	struct port_claim c = claim("10.0.0.1", A_PORT);

	ck_assert_int_eq(port_space_reserve(&space, RDMA_PS_TCP, A_PORT, MARK), 0);
	c.reuseaddr = true;
	c.afonly = true;
	ck_assert_int_eq(port_space_bind(&space, &c), -EADDRNOTAVAIL);
}

TEST(reserved_port_is_not_assigned)
{
	struct port_claim c[N_PORTS];

	port_space_reserve(&space, RDMA_PS_TCP, A_PORT, MARK);
	for (int i = 0; i < N_PORTS; i++) {
		c[i] = claim("10.0.0.1", 0);
		ck_assert_int_eq(port_space_bind(&space, &c[i]),
				 i < N_PORTS - 1 ? 0 : -EADDRNOTAVAIL);
		ck_assert_uint_ne(addr_port(&c[i].local), A_PORT);
	}
}

TEST(port_that_is_held_cannot_be_reserved)
{
	struct port_claim c = claim("10.0.0.1", A_PORT);

	ck_assert_int_eq(port_space_bind(&space, &c), 0);
	ck_assert_int_eq(port_space_reserve(&space, RDMA_PS_TCP, A_PORT, MARK), -EADDRINUSE);
	ck_assert_uint_eq(port_space_reserved(&space, RDMA_PS_TCP, A_PORT), 0);
}

TEST(port_is_reserved_once)
{
	port_space_reserve(&space, RDMA_PS_TCP, A_PORT, MARK);
	ck_assert_int_eq(port_space_reserve(&space, RDMA_PS_TCP, A_PORT, 2), -EADDRINUSE);
	ck_assert_uint_eq(port_space_reserved(&space, RDMA_PS_TCP, A_PORT), MARK);
}

TEST(unreserved_port_can_be_bound)
{
	struct port_claim c = claim("10.0.0.1", A_PORT);

	port_space_reserve(&space, RDMA_PS_TCP, A_PORT, MARK);
	port_space_unreserve(&space, RDMA_PS_TCP, A_PORT);
	ck_assert_int_eq(port_space_bind(&space, &c), 0);
}

TEST(unknown_port_space_has_no_reservations)
{
	uint16_t port;

	ck_assert_int_eq(port_space_reserve(&space, 0x7, A_PORT, MARK), -EPROTONOSUPPORT);
	ck_assert_int_eq(port_space_find_free(&space, 0x7, &port), -EPROTONOSUPPORT);
	ck_assert_uint_eq(port_space_reserved(&space, 0x7, A_PORT), 0);
	port_space_unreserve(&space, 0x7, A_PORT);
}

TEST(free_port_is_unused_and_within_the_range)
{
	uint16_t port;

	for (int i = 0; i < N_PORTS - 1; i++)
		port_space_reserve(&space, RDMA_PS_TCP, (uint16_t)(FIRST + 1 + i), MARK);
	ck_assert_int_eq(port_space_find_free(&space, RDMA_PS_TCP, &port), 0);
	ck_assert_uint_eq(port, FIRST);
	port_space_reserve(&space, RDMA_PS_TCP, FIRST, MARK);
	ck_assert_int_eq(port_space_find_free(&space, RDMA_PS_TCP, &port), -EADDRNOTAVAIL);
}

TEST(ports_of_one_mark_are_released_together)
{
	port_space_reserve(&space, RDMA_PS_TCP, FIRST, 0x10007);
	port_space_reserve(&space, RDMA_PS_UDP, LAST, 0x20007);
	port_space_reserve(&space, RDMA_PS_TCP, FIRST + 1, 0x10008);
	port_space_unreserve_those(&space, 0xffff, 7);
	ck_assert_uint_eq(port_space_reserved(&space, RDMA_PS_TCP, FIRST), 0);
	ck_assert_uint_eq(port_space_reserved(&space, RDMA_PS_UDP, LAST), 0);
	ck_assert_uint_eq(port_space_reserved(&space, RDMA_PS_TCP, FIRST + 1), 0x10008);
}
