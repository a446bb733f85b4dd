/* SPDX-License-Identifier: BSD-2-Clause */
/* Port spaces (lib/net/port_space.h): conflicts between claims of a port. */
#include <errno.h>
#include <malloc.h>
#include <rdma/rdma_cma.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/net/port_space.h"
#include "tests/unit/net/netns.h"
#include "tests/unit/test.h"

#define N(array) ((int)(sizeof(array) / sizeof((array)[0])))

static struct port_space space;

static void setup(void)
{
	struct port_limits limits = { .ephemeral_first = 40000,
				      .ephemeral_last = 40009,
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

static struct port_claim active(const char *address, const char *peer, uint16_t peer_port)
{
	struct port_claim c = claim(address, 0);

	c.peer = ip(peer);
	addr_set_port(&c.peer, peer_port);
	return c;
}

enum {
	REUSE = 1,
	AFONLY = 2
};

/* A holder, then a second claim of the same port, and the result of binding it. */
static const struct {
	const char *first;
	int first_flags;
	const char *second;
	int second_flags;
	int rc;
} pairs[] = {
	{ "10.0.0.1", 0, "10.0.0.1", 0, -EADDRINUSE },
	{ "10.0.0.1", 0, "10.0.0.2", 0, 0 },
	{ "10.0.0.1", 0, "0.0.0.0", 0, -EADDRNOTAVAIL },
	{ "0.0.0.0", 0, "10.0.0.1", 0, -EADDRNOTAVAIL },
	{ "0.0.0.0", 0, "0.0.0.0", 0, -EADDRNOTAVAIL },
	{ "127.0.0.1", 0, "10.0.0.1", 0, -EADDRNOTAVAIL },
	{ "127.0.0.1", 0, "127.0.0.1", 0, -EADDRNOTAVAIL },
	{ "10.0.0.1", 0, "::", 0, -EADDRNOTAVAIL },
	{ "10.0.0.1", AFONLY, "::", 0, -EADDRNOTAVAIL },
	{ "10.0.0.1", AFONLY, "::", AFONLY, 0 },
	{ "0.0.0.0", AFONLY, "::", AFONLY, 0 },
	{ "0.0.0.0", AFONLY, "0.0.0.0", AFONLY, -EADDRNOTAVAIL },
	{ "10.0.0.1", 0, "2001:db8::1", 0, 0 },
	{ "10.0.0.1", REUSE, "10.0.0.1", REUSE, 0 },
	{ "10.0.0.1", REUSE, "10.0.0.1", 0, -EADDRINUSE },
	{ "10.0.0.1", 0, "10.0.0.1", REUSE, -EADDRINUSE },
	{ "0.0.0.0", REUSE, "0.0.0.0", REUSE | AFONLY, 0 },
	{ "2001:db8::1", 0, "2001:db8::1", 0, -EADDRINUSE },
	{ "2001:db8::1", REUSE | AFONLY, "::1", AFONLY, -EADDRNOTAVAIL },
};

static struct port_claim claim_with(const char *address, int flags)
{
	struct port_claim c = claim(address, 7471);

	c.reuseaddr = flags & REUSE;
	c.afonly = flags & AFONLY;
	return c;
}

FIXTURE(setup, teardown);

TEST_LOOP(second_holder_gets_the_result_of_its_row, 0, N(pairs))
{
	struct port_claim first = claim_with(pairs[_i].first, pairs[_i].first_flags);
	struct port_claim second = claim_with(pairs[_i].second, pairs[_i].second_flags);

	ck_assert_int_eq(port_space_bind(&space, &first), 0);
	ck_assert_int_eq(port_space_bind(&space, &second), pairs[_i].rc);
	ck_assert_int_eq(second.link != NULL, !pairs[_i].rc);
}

TEST(link_local_addresses_conflict_in_one_scope_only)
{
	struct port_claim first = claim("fe80::1", 7471);
	struct port_claim second = first;
	struct port_claim third = first;

	first.local.in6.sin6_scope_id = 2;
	second.local.in6.sin6_scope_id = 3;
	third.local.in6.sin6_scope_id = 2;
	ck_assert_int_eq(port_space_bind(&space, &first), 0);
	ck_assert_int_eq(port_space_bind(&space, &second), 0);
	ck_assert_int_eq(port_space_bind(&space, &third), -EADDRINUSE);
}

TEST(port_spaces_are_independent)
{
	static const uint16_t spaces[] = { RDMA_PS_IPOIB, RDMA_PS_TCP, RDMA_PS_UDP, RDMA_PS_IB };
	struct port_claim claims[N(spaces)];

	for (int i = 0; i < N(spaces); i++) {
		claims[i] = claim("0.0.0.0", 7471);
		claims[i].ps = spaces[i];
		ck_assert_int_eq(port_space_bind(&space, &claims[i]), 0);
	}
}

TEST(unknown_port_space_is_refused)
{
	struct port_claim c = claim("0.0.0.0", 7471);

	c.ps = 0x0107;
	ck_assert_int_eq(port_space_bind(&space, &c), -EPROTONOSUPPORT);
	ck_assert_ptr_null(port_space_first(&space, 0x0107, 7471));
}

TEST(low_port_needs_the_privilege)
{
	struct port_claim c = claim("0.0.0.0", 1023);

	ck_assert_int_eq(port_space_bind(&space, &c), -EACCES);
	space.limits.may_bind_low = true;
	ck_assert_int_eq(port_space_bind(&space, &c), 0);
}

/* That is a setting for sockets; the first unprivileged port of RDMA is always 1024. */
TEST(ip_unprivileged_port_start_does_not_matter)
{
	struct port_claim low = claim("0.0.0.0", 80), high = claim("0.0.0.0", 1500);

	space.limits.unprivileged_first = 0;
	ck_assert_int_eq(port_space_bind(&space, &low), -EACCES);
	space.limits.unprivileged_first = 2000;
	ck_assert_int_eq(port_space_bind(&space, &high), 0);
}

TEST(first_unprivileged_port_is_free_to_all)
{
	struct port_claim c = claim("0.0.0.0", 1024);

	ck_assert_int_eq(port_space_bind(&space, &c), 0);
}

TEST(bound_claim_cannot_be_bound_again)
{
	struct port_claim c = claim("0.0.0.0", 7471);

	ck_assert_int_eq(port_space_bind(&space, &c), 0);
	ck_assert_int_eq(port_space_bind(&space, &c), -EINVAL);
}

TEST(claim_without_an_address_is_refused)
{
	struct port_claim c = { .ps = RDMA_PS_TCP };

	ck_assert_int_eq(port_space_bind(&space, &c), -EINVAL);
}

TEST(released_port_can_be_bound_again)
{
	struct port_claim first = claim("0.0.0.0", 7471);
	struct port_claim second = claim("0.0.0.0", 7471);

	ck_assert_int_eq(port_space_bind(&space, &first), 0);
	port_space_release(&space, &first);
	ck_assert(!first.link);
	ck_assert_int_eq(port_space_bind(&space, &second), 0);
}

TEST(releasing_twice_is_harmless)
{
	struct port_claim first = claim("10.0.0.1", 7471);
	struct port_claim second = claim("10.0.0.2", 7471);

	ck_assert_int_eq(port_space_bind(&space, &first), 0);
	ck_assert_int_eq(port_space_bind(&space, &second), 0);
	port_space_release(&space, &first);
	port_space_release(&space, &first);
	ck_assert_ptr_eq(port_space_first(&space, RDMA_PS_TCP, 7471), &second);
	ck_assert_ptr_null(second.next);
}

TEST(ephemeral_port_comes_from_the_range)
{
	struct port_claim c = claim("10.0.0.1", 0);

	ck_assert_int_eq(port_space_bind(&space, &c), 0);
	ck_assert_uint_ge(addr_port(&c.local), 40000);
	ck_assert_uint_le(addr_port(&c.local), 40009);
	ck_assert_ptr_eq(port_space_first(&space, RDMA_PS_TCP, addr_port(&c.local)), &c);
}

TEST(each_ephemeral_port_is_assigned_once)
{
	struct port_claim claims[11];
	unsigned int seen = 0;

	for (int i = 0; i < 10; i++) {
		claims[i] = claim("0.0.0.0", 0);
		ck_assert_int_eq(port_space_bind(&space, &claims[i]), 0);
		seen |= 1u << (addr_port(&claims[i].local) - 40000);
	}
	ck_assert_uint_eq(seen, 0x3ff);
	claims[10] = claim("0.0.0.0", 0);
	ck_assert_int_eq(port_space_bind(&space, &claims[10]), -EADDRNOTAVAIL);
	ck_assert(!claims[10].link);
}

TEST(range_may_end_at_the_last_port)
{
	struct port_claim c = claim("0.0.0.0", 0);

	space.limits.ephemeral_first = UINT16_MAX;
	space.limits.ephemeral_last = UINT16_MAX;
	ck_assert_int_eq(port_space_bind(&space, &c), 0);
	ck_assert_uint_eq(addr_port(&c.local), UINT16_MAX);
}

TEST(last_port_is_not_reused_at_once)
{
	for (int i = 0; i < 100; i++) {
		struct port_claim c = claim("0.0.0.0", 0);
		uint16_t last = space.last_port;

		ck_assert_int_eq(port_space_bind(&space, &c), 0);
		ck_assert_uint_ne(addr_port(&c.local), last);
		port_space_release(&space, &c);
	}
}

TEST(ephemeral_ports_start_anywhere)
{
	unsigned int seen = 0;

	for (int i = 0; i < 200; i++) {
		struct port_claim c = claim("0.0.0.0", 0);

		ck_assert_int_eq(port_space_bind(&space, &c), 0);
		seen |= 1u << (addr_port(&c.local) - 40000);
		port_space_release(&space, &c);
	}
	ck_assert_uint_eq(seen, 0x3ff);
}

/* Only one port can be shared: which claims may have it next to 10.0.0.1 -> 10.0.0.9:7471? */
static const struct {
	const char *address, *peer;
	uint16_t peer_port;
	int rc;
} sharers[] = {
	{ "10.0.0.1", "10.0.0.9", 7471, -EADDRNOTAVAIL },
	{ "10.0.0.1", "10.0.0.9", 7472, 0 },
	{ "10.0.0.1", "10.0.0.8", 7471, 0 },
	{ "10.0.0.2", "10.0.0.9", 7471, 0 },
	{ "0.0.0.0", "10.0.0.9", 7471, -EADDRNOTAVAIL },
	{ "0.0.0.0", "10.0.0.9", 7472, 0 },
	{ "10.0.0.1", "0.0.0.0", 7471, -EADDRNOTAVAIL },
	{ "10.0.0.1", "10.0.0.9", 0, -EADDRNOTAVAIL },
};

TEST_LOOP(ephemeral_port_is_shared_by_different_claims, 0, N(sharers))
{
	struct port_claim first = active("10.0.0.1", "10.0.0.9", 7471);
	struct port_claim second =
		active(sharers[_i].address, sharers[_i].peer, sharers[_i].peer_port);

	space.limits.ephemeral_last = space.limits.ephemeral_first;
	ck_assert_int_eq(port_space_bind(&space, &first), 0);
	space.last_port = 0;
	ck_assert_int_eq(port_space_bind(&space, &second), sharers[_i].rc);
}

TEST(claim_without_a_peer_shares_with_other_sources_only)
{
	struct port_claim first = active("10.0.0.1", "10.0.0.9", 7471);
	struct port_claim same = claim("10.0.0.1", 0);
	struct port_claim other = claim("10.0.0.2", 0);

	space.limits.ephemeral_last = space.limits.ephemeral_first;
	ck_assert_int_eq(port_space_bind(&space, &first), 0);
	space.last_port = 0;
	ck_assert_int_eq(port_space_bind(&space, &same), -EADDRNOTAVAIL);
	ck_assert_int_eq(port_space_bind(&space, &other), 0);
}

TEST(listening_ends_reuse)
{
	struct port_claim first = claim_with("10.0.0.1", REUSE);
	struct port_claim second = claim_with("10.0.0.1", REUSE);

	ck_assert_int_eq(port_space_bind(&space, &first), 0);
	ck_assert_int_eq(port_space_listen(&space, &first), 0);
	ck_assert(!first.reuseaddr);
	ck_assert_int_eq(port_space_bind(&space, &second), -EADDRINUSE);
}

TEST(reused_port_cannot_listen)
{
	struct port_claim first = claim_with("10.0.0.1", REUSE);
	struct port_claim second = claim_with("10.0.0.1", REUSE);

	ck_assert_int_eq(port_space_bind(&space, &first), 0);
	ck_assert_int_eq(port_space_bind(&space, &second), 0);
	ck_assert_int_eq(port_space_listen(&space, &second), -EADDRINUSE);
	ck_assert(second.reuseaddr && second.link);
}

TEST(reused_wildcard_cannot_listen)
{
	struct port_claim first = claim_with("0.0.0.0", REUSE);
	struct port_claim second = claim_with("10.0.0.1", REUSE);

	ck_assert_int_eq(port_space_bind(&space, &first), 0);
	ck_assert_int_eq(port_space_bind(&space, &second), 0);
	ck_assert_int_eq(port_space_listen(&space, &second), -EADDRNOTAVAIL);
}

TEST(unbound_claim_cannot_listen)
{
	struct port_claim c = claim_with("10.0.0.1", REUSE);

	ck_assert_int_eq(port_space_listen(&space, &c), -EINVAL);
}

TEST(holders_are_listed_newest_first)
{
	struct port_claim first = claim("10.0.0.1", 7471);
	struct port_claim second = claim("10.0.0.2", 7471);
	struct port_claim third = claim("10.0.0.3", 7471);

	ck_assert_int_eq(port_space_bind(&space, &first), 0);
	ck_assert_int_eq(port_space_bind(&space, &second), 0);
	ck_assert_int_eq(port_space_bind(&space, &third), 0);
	port_space_release(&space, &second);
	ck_assert_ptr_eq(port_space_first(&space, RDMA_PS_TCP, 7471), &third);
	ck_assert_ptr_eq(third.next, &first);
	ck_assert_ptr_null(first.next);
}

TEST_LOOP(port_is_free_when_all_holders_are_released, 0, 6)
{
	static const int orders[][3] = { { 0, 1, 2 }, { 0, 2, 1 }, { 1, 0, 2 },
					 { 1, 2, 0 }, { 2, 0, 1 }, { 2, 1, 0 } };
	struct port_claim claims[3] = { claim("10.0.0.1", 7471), claim("10.0.0.2", 7471),
					claim("10.0.0.3", 7471) };

	for (int i = 0; i < 3; i++)
		ck_assert_int_eq(port_space_bind(&space, &claims[i]), 0);
	for (int i = 0; i < 3; i++)
		port_space_release(&space, &claims[orders[_i][i]]);
	ck_assert_ptr_null(port_space_first(&space, RDMA_PS_TCP, 7471));
}

TEST(free_port_has_no_holder)
{
	ck_assert_ptr_null(port_space_first(&space, RDMA_PS_TCP, 7471));
}

TEST(all_ports_can_be_held)
{
	struct port_claim *claims = calloc(65536, sizeof(*claims));

	for (int port = 1024; port < 65536; port++) {
		claims[port] = claim("0.0.0.0", port);
		ck_assert_int_eq(port_space_bind(&space, &claims[port]), 0);
	}
	for (int port = 1024; port < 65536; port++)
		ck_assert_ptr_eq(port_space_first(&space, RDMA_PS_TCP, port), &claims[port]);
	for (int port = 1024; port < 65536; port++)
		port_space_release(&space, &claims[port]);
	ck_assert_ptr_null(port_space_first(&space, RDMA_PS_TCP, 7471));
	free(claims);
}

/* A client that binds and releases every port must not make cmportd keep all pages. */
TEST(released_ports_keep_little_memory)
{
	const size_t before = mallinfo2().uordblks;
	struct port_claim c;

	for (int port = 1024; port < 65536; port += 5) { /* some of each page */
		c = claim("0.0.0.0", port);
		ck_assert_int_eq(port_space_bind(&space, &c), 0);
		port_space_release(&space, &c);
		ck_assert_int_eq(port_space_reserve(&space, RDMA_PS_UDP, port, 1), 0);
		port_space_unreserve(&space, RDMA_PS_UDP, port);
		ck_assert_int_eq(port_space_reserve(&space, RDMA_PS_IB, port, 1), 0);
		port_space_unreserve_those(&space, UINT32_MAX, 1);
	}
	printf("%zu bytes\n", mallinfo2().uordblks - before);
	ck_assert_uint_le(mallinfo2().uordblks - before, 65536);
}

FIXTURE(NULL, NULL);

TEST(limits_of_this_host_make_sense)
{
	struct port_limits limits;

	port_limits_read(&limits);
	ck_assert_uint_ge(limits.ephemeral_first, 1);
	ck_assert_uint_le(limits.ephemeral_first, limits.ephemeral_last);
	ck_assert_uint_ge(limits.max_backlog, 1);
}

NEEDS(netns_allowed);

TEST(limits_follow_the_settings)
{
	struct port_limits limits;

	netns_enter();
	run("echo 20000 20099 > /proc/sys/net/ipv4/ip_local_port_range");
	run("echo 80 > /proc/sys/net/ipv4/ip_unprivileged_port_start");
	run("echo 1 > /proc/sys/net/ipv6/bindv6only");
	port_limits_read(&limits);
	ck_assert_uint_eq(limits.ephemeral_first, 20000);
	ck_assert_uint_eq(limits.ephemeral_last, 20099);
	ck_assert_uint_eq(limits.unprivileged_first, 80);
	ck_assert(limits.v6_only);
}

TEST(limits_follow_the_settings_when_read_again)
{
	struct port_limits limits;

	netns_enter();
	port_limits_read(&limits);
	port_limits_reread(&limits);
	run("echo 20000 20099 > /proc/sys/net/ipv4/ip_local_port_range");
	run("echo 80 > /proc/sys/net/ipv4/ip_unprivileged_port_start");
	port_limits_reread(&limits);
	ck_assert_uint_eq(limits.ephemeral_first, 20000);
	ck_assert_uint_eq(limits.ephemeral_last, 20099);
	ck_assert_uint_eq(limits.unprivileged_first, 80);
}
