/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Neighbours (lib/neigh.c) against the running kernel: each test makes its own network.
 */
#include <check.h>
#include <errno.h>
#include <string.h>

#include "lib/net/netlink.h"
#include "tests/unit/net/nets.h"

START_TEST(local_address_needs_no_neighbour)
{
	struct net_route route = route_to("10.0.0.1");

	ck_assert_int_eq(net_neigh_state(&route), NET_NEIGH_KNOWN);
}
END_TEST

START_TEST(interface_without_arp_needs_no_neighbour)
{
	struct net_route route;

	run("ip link set d0 arp off");
	route = route_to("10.0.0.9");
	ck_assert_int_eq(net_neigh_state(&route), NET_NEIGH_KNOWN);
}
END_TEST

/* Addresses that a peer may have, and how to give them to it. */
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
		net_watch_drain(watch(), note_neigh, &wanted);
	}
	return wanted;
}

START_TEST(neighbour_never_asked_for_is_none)
{
	struct net_route route = route_to(peer_addrs[_i]);

	ck_assert_int_eq(net_neigh_state(&route), NET_NEIGH_NONE);
}
END_TEST

START_TEST(neighbour_that_answers_becomes_known)
{
	struct net_route route;

	peer_gets(peer_addrs[_i]);
	route = route_to(peer_addrs[_i]);
	ck_assert_int_eq(net_neigh_ask(&route), 0);
	if (net_neigh_state(&route) != NET_NEIGH_KNOWN)
		wait_for(&route.next_hop, NET_NEIGH_KNOWN);
	ck_assert_int_eq(net_neigh_state(&route), NET_NEIGH_KNOWN);
}
END_TEST

START_TEST(unprivileged_process_can_ask_too)
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
END_TEST

START_TEST(unprivileged_process_can_ask_for_a_gateway)
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
END_TEST

START_TEST(neighbour_is_pending_until_it_fails)
{
	struct net_route route = route_to("10.0.0.7");

	/* Between asking and looking, a busy host may be busy with something else. */
	run("echo 1000 > /proc/sys/net/ipv4/neigh/veth0/retrans_time_ms");
	ck_assert_int_eq(net_neigh_ask(&route), 0);
	ck_assert_int_eq(net_neigh_state(&route), NET_NEIGH_PENDING);
	wait_for(&route.next_hop, NET_NEIGH_FAILED);
	ck_assert_int_eq(net_neigh_state(&route), NET_NEIGH_FAILED);
}
END_TEST

START_TEST(failed_neighbour_can_be_asked_again)
{
	struct net_route route = route_to("10.0.0.2");

	ck_assert_int_eq(net_neigh_ask(&route), 0);
	wait_for(&route.next_hop, NET_NEIGH_FAILED);
	peer_gets("10.0.0.2");
	ck_assert_int_eq(net_neigh_ask(&route), 0);
	wait_for(&route.next_hop, NET_NEIGH_KNOWN);
}
END_TEST

START_TEST(second_failure_is_reported_as_the_first_was)
{
	struct net_route route = route_to("10.0.0.7");

	for (int i = 0; i < 2; i++) {
		ck_assert_int_eq(net_neigh_ask(&route), 0);
		wait_for(&route.next_hop, NET_NEIGH_FAILED);
	}
}
END_TEST

static struct net_route known_neighbour(void)
{
	struct net_route route = route_to("10.0.0.2");

	run("ip neigh add 10.0.0.2 lladdr 02:00:00:00:00:01 dev veth0 nud reachable");
	ck_assert_int_eq(net_neigh_state(&route), NET_NEIGH_KNOWN);
	net_watch_drain(watch(), NULL, NULL);
	return route;
}

/* What a bad network made of an answer is believed for a minute. */
static struct net_route wrong_neighbour(const char *nud)
{
	struct net_route route;

	peer_gets("10.0.0.2");
	route = route_to("10.0.0.2");
	run("ip neigh add 10.0.0.2 lladdr 02:00:00:00:00:01 dev veth0 nud %s", nud);
	ck_assert_int_eq(net_neigh_state(&route), NET_NEIGH_KNOWN);
	net_watch_drain(watch(), NULL, NULL);
	return route;
}

START_TEST(revalidation_finds_a_wrong_link_address)
{
	struct net_route route = wrong_neighbour("reachable");

	net_neigh_revalidate(&route);
	wait_for(&route.next_hop, NET_NEIGH_FAILED);
	ck_assert_int_eq(net_neigh_ask(&route), 0);
	ck_assert(wait_for(&route.next_hop, NET_NEIGH_KNOWN).hw_changed);
}
END_TEST

START_TEST(revalidation_keeps_a_right_link_address)
{
	struct net_route route;
	int n_events = 0;

	peer_gets("10.0.0.2");
	route = route_to("10.0.0.2");
	ck_assert_int_eq(net_neigh_ask(&route), 0);
	if (net_neigh_state(&route) != NET_NEIGH_KNOWN)
		wait_for(&route.next_hop, NET_NEIGH_KNOWN);
	net_watch_drain(watch(), NULL, NULL);
	net_neigh_revalidate(&route);
	wait_until("ip neigh show 10.0.0.2 nud reachable | grep -q .");
	net_watch_drain(watch(), count, &n_events);
	ck_assert_int_eq(n_events, 0);
}
END_TEST

START_TEST(link_address_that_was_set_by_hand_is_not_revalidated)
{
	struct net_route route = wrong_neighbour("permanent");

	net_neigh_revalidate(&route);
	run("ip neigh show 10.0.0.2 nud permanent | grep -q .");
}
END_TEST

START_TEST(new_link_address_is_reported_as_changed)
{
	struct net_route route = known_neighbour();

	run("ip neigh replace 10.0.0.2 lladdr 02:00:00:00:00:02 dev veth0 nud reachable");
	ck_assert(wait_for(&route.next_hop, NET_NEIGH_KNOWN).hw_changed);
}
END_TEST

START_TEST(new_link_address_after_a_loss_is_reported_as_changed)
{
	struct net_route route = known_neighbour();

	run("ip neigh del 10.0.0.2 dev veth0");
	run("ip neigh add 10.0.0.2 lladdr 02:00:00:00:00:02 dev veth0 nud reachable");
	ck_assert(wait_for(&route.next_hop, NET_NEIGH_KNOWN).hw_changed);
}
END_TEST

START_TEST(confirmed_neighbour_is_not_news)
{
	int n_events = 0;

	known_neighbour();
	run("ip neigh replace 10.0.0.2 lladdr 02:00:00:00:00:01 dev veth0 nud stale");
	net_watch_drain(watch(), count, &n_events);
	ck_assert_int_eq(n_events, 0);
}
END_TEST

START_TEST(lost_neighbour_is_not_known_any_more)
{
	struct net_route route = known_neighbour();

	run("ip neigh del 10.0.0.2 dev veth0");
	ck_assert_int_ne(net_neigh_state(&route), NET_NEIGH_KNOWN);
}
END_TEST

static void add_idle(TCase *tc)
{
	tcase_add_test(tc, local_address_needs_no_neighbour);
	tcase_add_test(tc, interface_without_arp_needs_no_neighbour);
}

static void add_asking(TCase *tc)
{
	tcase_add_loop_test(tc, neighbour_never_asked_for_is_none, 0, N(peer_addrs));
	tcase_add_loop_test(tc, neighbour_that_answers_becomes_known, 0, N(peer_addrs));
	tcase_add_loop_test(tc, unprivileged_process_can_ask_too, 0, N(peer_addrs));
	tcase_add_test(tc, unprivileged_process_can_ask_for_a_gateway);
	tcase_add_test(tc, neighbour_is_pending_until_it_fails);
	tcase_add_test(tc, failed_neighbour_can_be_asked_again);
	tcase_add_test(tc, second_failure_is_reported_as_the_first_was);
	tcase_add_test(tc, revalidation_finds_a_wrong_link_address);
	tcase_add_test(tc, revalidation_keeps_a_right_link_address);
	tcase_add_test(tc, link_address_that_was_set_by_hand_is_not_revalidated);
	tcase_add_test(tc, new_link_address_is_reported_as_changed);
	tcase_add_test(tc, new_link_address_after_a_loss_is_reported_as_changed);
	tcase_add_test(tc, confirmed_neighbour_is_not_news);
	tcase_add_test(tc, lost_neighbour_is_not_known_any_more);
}

static const struct nets_case cases[] = {
	{"without asking", two_nets, add_idle  },
	{ "asking",	    veth_net, add_asking},
	{ NULL,		NULL,     NULL	   },
};

int main(void)
{
	return nets_run("net_neigh", cases);
}
