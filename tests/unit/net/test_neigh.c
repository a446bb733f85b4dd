/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Neighbours (lib/net/neigh.c) against the running kernel: each test makes its own network.
 */
#include <errno.h>
#include <string.h>

#include "lib/net/internal.h"
#include "lib/net/netlink.h"
#include "tests/unit/net/nets.h"
#include "tests/unit/test.h"

NEEDS(netns_allowed);
FIXTURE(two_nets, NULL);

TEST(local_address_needs_no_neighbour)
{
	struct net_route route = route_to("10.0.0.1");

	ck_assert_int_eq(net_neigh_state(&route), NET_NEIGH_KNOWN);
}

TEST(interface_without_arp_needs_no_neighbour)
{
	struct net_route route;

	run("ip link set d0 arp off");
	route = route_to("10.0.0.9");
	ck_assert_int_eq(net_neigh_state(&route), NET_NEIGH_KNOWN);
}

/* Addresses of a peer, and the commands that add them to it. */
static const char *const peer_addrs[] = { "10.0.0.2", "2001:db8::2", "fe80::2%veth0" };

static void peer_gets(const char *address)
{
	peer_run("ip addr add %.*s/24 dev veth1 %s", (int)strcspn(address, "%"), address,
		 strchr(address, ':') ? "nodad" : "");
}

struct wanted {
	union addr addr;
	enum net_neigh neigh;
	bool seen;
	bool hw_changed;
};

static void note_neigh(const struct net_event *event, void *arg)
{
	struct wanted *wanted = arg;

	if (event->change == NET_CHANGE_NEIGH && event->neigh == wanted->neigh &&
	    addr_same_ip(&event->addr, &wanted->addr)) {
		wanted->seen = true;
		wanted->hw_changed = event->hw_changed;
	}
}

static struct wanted wait_for(const union addr *addr, enum net_neigh neigh)
{
	struct wanted wanted = { .addr = *addr, .neigh = neigh };

	while (!wanted.seen) {
		ck_assert_msg(readable(20000), "nothing announced about %s", ip_text(*addr));
		net_watch_drain(note_neigh, &wanted);
	}
	return wanted;
}

FIXTURE(veth_net, NULL);

TEST_LOOP(unrequested_neighbour_is_none, 0, N(peer_addrs))
{
	struct net_route route = route_to(peer_addrs[_i]);

	ck_assert_int_eq(net_neigh_state(&route), NET_NEIGH_NONE);
}

TEST_LOOP(neighbour_that_answers_becomes_known, 0, N(peer_addrs))
{
	struct net_route route;

	peer_gets(peer_addrs[_i]);
	route = route_to(peer_addrs[_i]);
	ck_assert_int_eq(net_neigh_ask(&route), 0);
	if (net_neigh_state(&route) != NET_NEIGH_KNOWN)
		wait_for(&route.next_hop, NET_NEIGH_KNOWN);
	ck_assert_int_eq(net_neigh_state(&route), NET_NEIGH_KNOWN);
}

TEST_LOOP(unprivileged_process_can_request_resolution, 0, N(peer_addrs))
{
	struct net_route route;

	peer_gets(peer_addrs[_i]);
	drop_net_admin();
	route = route_to(peer_addrs[_i]);
	ck_assert_int_eq(net_neigh_ask(&route), 0);
	if (net_neigh_state(&route) != NET_NEIGH_KNOWN)
		wait_for(&route.next_hop, NET_NEIGH_KNOWN);
	ck_assert_int_eq(net_neigh_state(&route), NET_NEIGH_KNOWN);
}

TEST(unprivileged_process_can_request_resolution_of_a_gateway)
{
	struct net_route route;

	peer_gets("10.0.0.2");
	run("ip route add default via 10.0.0.2");
	drop_net_admin();
	route = route_to("192.0.2.1");
	ck_assert_int_eq(net_neigh_ask(&route), 0);
	if (net_neigh_state(&route) != NET_NEIGH_KNOWN)
		wait_for(&route.next_hop, NET_NEIGH_KNOWN);
	ck_assert_int_eq(net_neigh_state(&route), NET_NEIGH_KNOWN);
}

TEST(neighbour_is_pending_until_it_fails)
{
	struct net_route route = route_to("10.0.0.7");

	/* A busy host may be delayed between the request and the check. */
	run("echo 1000 > /proc/sys/net/ipv4/neigh/veth0/retrans_time_ms");
	ck_assert_int_eq(net_neigh_ask(&route), 0);
	ck_assert_int_eq(net_neigh_state(&route), NET_NEIGH_PENDING);
	wait_for(&route.next_hop, NET_NEIGH_FAILED);
	ck_assert_int_eq(net_neigh_state(&route), NET_NEIGH_FAILED);
}

TEST(failed_neighbour_can_be_requested_again)
{
	struct net_route route = route_to("10.0.0.2");

	ck_assert_int_eq(net_neigh_ask(&route), 0);
	wait_for(&route.next_hop, NET_NEIGH_FAILED);
	peer_gets("10.0.0.2");
	ck_assert_int_eq(net_neigh_ask(&route), 0);
	wait_for(&route.next_hop, NET_NEIGH_KNOWN);
}

TEST(second_failure_is_reported_too)
{
	struct net_route route = route_to("10.0.0.7");

	for (int i = 0; i < 2; i++) {
		ck_assert_int_eq(net_neigh_ask(&route), 0);
		wait_for(&route.next_hop, NET_NEIGH_FAILED);
	}
}

static struct net_route known_neighbour(void)
{
	struct net_route route = route_to("10.0.0.2");

	run("ip neigh add 10.0.0.2 lladdr 02:00:00:00:00:01 dev veth0 nud reachable");
	ck_assert_int_eq(net_neigh_state(&route), NET_NEIGH_KNOWN);
	net_watch_drain(NULL, NULL);
	return route;
}

/* An answer over a bad network is trusted for a minute. */
static struct net_route wrong_neighbour(const char *nud)
{
	struct net_route route;

	peer_gets("10.0.0.2");
	route = route_to("10.0.0.2");
	run("ip neigh add 10.0.0.2 lladdr 02:00:00:00:00:01 dev veth0 nud %s", nud);
	ck_assert_int_eq(net_neigh_state(&route), NET_NEIGH_KNOWN);
	net_watch_drain(NULL, NULL);
	return route;
}

TEST(revalidation_finds_a_wrong_link_address)
{
	struct net_route route = wrong_neighbour("reachable");

	net_neigh_revalidate(&route);
	wait_for(&route.next_hop, NET_NEIGH_FAILED);
	ck_assert_int_eq(net_neigh_ask(&route), 0);
	ck_assert(wait_for(&route.next_hop, NET_NEIGH_KNOWN).hw_changed);
}

/* Without CAP_NET_ADMIN no process can make the kernel probe; it probes when a datagram is sent. */
TEST(unprivileged_revalidation_finds_a_stale_wrong_link_address)
{
	struct net_route route;

	run("cd /proc/sys/net/ipv4/neigh/veth0; echo 1 > delay_first_probe_time; "
	    "echo 100 > retrans_time_ms");
	route = wrong_neighbour("stale");
	drop_net_admin();
	net_neigh_revalidate(&route);
	wait_for(&route.next_hop, NET_NEIGH_FAILED);
	ck_assert_int_eq(net_neigh_ask(&route), 0);
	ck_assert(wait_for(&route.next_hop, NET_NEIGH_KNOWN).hw_changed);
}

TEST(revalidation_keeps_a_right_link_address)
{
	struct net_route route;
	int n_events = 0;

	peer_gets("10.0.0.2");
	route = route_to("10.0.0.2");
	ck_assert_int_eq(net_neigh_ask(&route), 0);
	if (net_neigh_state(&route) != NET_NEIGH_KNOWN)
		wait_for(&route.next_hop, NET_NEIGH_KNOWN);
	net_watch_drain(NULL, NULL);
	net_neigh_revalidate(&route);
	wait_until("ip neigh show 10.0.0.2 nud reachable | grep -q .");
	net_watch_drain(count, &n_events);
	ck_assert_int_eq(n_events, 0);
}

TEST(link_address_that_was_set_by_hand_is_not_revalidated)
{
	struct net_route route = wrong_neighbour("permanent");

	net_neigh_revalidate(&route);
	run("ip neigh show 10.0.0.2 nud permanent | grep -q .");
}

TEST(new_link_address_is_reported_as_changed)
{
	struct net_route route = known_neighbour();

	run("ip neigh replace 10.0.0.2 lladdr 02:00:00:00:00:02 dev veth0 nud reachable");
	ck_assert(wait_for(&route.next_hop, NET_NEIGH_KNOWN).hw_changed);
}

TEST(new_link_address_is_reported_as_changed_after_many_routes)
{
	struct net_route route;
	struct wanted wanted;

	net_watch_close();
	ck_assert_int_eq(net_watch_open(NET_WATCH_OWN), 0);
	route = wrong_neighbour("reachable");
	net_catch_up(); /* finds nothing */
	/* Without these routes it passes. */
	run("for i in $(seq 0 9999); do"
	    " echo route add 10.5.$((i/256)).$((i%%256)) via 10.0.0.254; done | ip -b -");
	run("ip neigh replace 10.0.0.2 lladdr 02:00:00:00:00:02 dev veth0 nud reachable");
	wanted = (struct wanted){ .addr = route.next_hop, .neigh = NET_NEIGH_KNOWN };
	ck_assert(readable(2000));
	net_watch_drain(note_neigh, &wanted);
	ck_assert(wanted.seen);
	ck_assert(wanted.hw_changed);
}

TEST(new_link_address_after_a_loss_is_reported_as_changed)
{
	struct net_route route = known_neighbour();

	run("ip neigh del 10.0.0.2 dev veth0");
	run("ip neigh add 10.0.0.2 lladdr 02:00:00:00:00:02 dev veth0 nud reachable");
	ck_assert(wait_for(&route.next_hop, NET_NEIGH_KNOWN).hw_changed);
}

TEST(confirmed_neighbour_is_not_reported)
{
	int n_events = 0;

	known_neighbour();
	run("ip neigh replace 10.0.0.2 lladdr 02:00:00:00:00:01 dev veth0 nud stale");
	net_watch_drain(count, &n_events);
	ck_assert_int_eq(n_events, 0);
}

static void confirm_neighbour(const char *addr)
{
	run("ip neigh replace %s lladdr 02:00:00:00:00:01 dev veth0 nud reachable", addr);
}

/* The last address is no next hop, whatever its last byte: each interface has it. */
static const char *const others[] = { "10.0.0.77", "fd00:10::77", "fd00:10::277", "ff02::2" };

/* Otherwise any process that has looked up routes would be woken for each. */
TEST_LOOP(neighbour_of_others_is_not_announced, 0, N(others))
{
	known_neighbour();
	ck_assert(!readable(0));
	confirm_neighbour(others[_i]);
	ck_assert(!readable(0));
}

/* The kernel may choose another gateway then. */
TEST_LOOP(failed_neighbour_of_others_is_announced, 0, N(others))
{
	known_neighbour();
	confirm_neighbour(others[_i]);
	run("ip neigh del %s dev veth0", others[_i]);
	ck_assert(readable(0));
}

static const char *const looked_up[] = { "10.0.0.2", "2001:db8::2" };

TEST_LOOP(neighbour_is_announced_as_soon_as_it_was_looked_up, 0, N(looked_up))
{
	struct net_route route = route_to(looked_up[_i]);

	net_watch_drain(NULL, NULL);
	ck_assert_int_eq(net_neigh_state(&route), NET_NEIGH_NONE);
	ck_assert(!readable(0));
	confirm_neighbour(looked_up[_i]);
	ck_assert(readable(0));
	ck_assert_int_eq(net_neigh_state(&route), NET_NEIGH_KNOWN);
}

#define MANY 100 /* more than the filter compares */

TEST(all_neighbours_are_announced_after_many_lookups)
{
	struct net_route route = route_to("10.0.0.2");
	unsigned int i;

	for (i = 0; i < MANY; i++) {
		route.next_hop.in4.sin_addr.s_addr = htonl(0x0a000002 + i);
		net_neigh_state(&route);
	}
	net_watch_drain(NULL, NULL);
	ck_assert(!readable(0));
	confirm_neighbour("10.0.0.222");
	ck_assert(readable(0));
}

#define PEERS	   10000
#define FIRST_PEER 0x0a010000 /* 10.1.0.0 */

static bool is_kept(const struct net_route *route)
{
	bool is;

	ck_assert_int_eq(net_enter(), 0);
	is = net_neigh_is_known(route);
	net_leave();
	return is;
}

TEST(ten_thousand_neighbours_are_kept)
{
	struct net_route route = route_to("10.0.0.2");
	unsigned int i;

	run("for i in $(seq 0 39); do for j in $(seq 0 255); do echo \"neigh add 10.1.$i.$j lladdr "
	    "02:00:00:00:00:01 dev veth0 nud permanent\"; done; done | ip -batch -");
	for (i = 0; i < PEERS; i++) {
		route.next_hop.in4.sin_addr.s_addr = htonl(FIRST_PEER + i);
		ck_assert_int_eq(net_neigh_state(&route), NET_NEIGH_KNOWN);
	}
	for (i = 0; i < PEERS; i++) {
		route.next_hop.in4.sin_addr.s_addr = htonl(FIRST_PEER + i);
		ck_assert_msg(is_kept(&route), "number %u was forgotten", i);
	}
}

TEST(lost_neighbour_is_no_longer_known)
{
	struct net_route route = known_neighbour();

	run("ip neigh del 10.0.0.2 dev veth0");
	ck_assert_int_ne(net_neigh_state(&route), NET_NEIGH_KNOWN);
}
