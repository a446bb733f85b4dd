/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Routes (lib/net/route.c) against the running kernel: each test makes its own network.
 */
#include <errno.h>
#include <net/if.h>

#include "lib/net/netlink.h"
#include "tests/unit/net/nets.h"
#include "tests/unit/test.h"

NEEDS(netns_allowed);
FIXTURE(two_nets, NULL);

TEST(destination_without_route_is_unreachable)
{
	struct net_route route;

	ck_assert_int_eq(lookup("192.0.2.1", NULL, NULL, &route), -ENETUNREACH);
	ck_assert_int_eq(lookup("2001:db8::1", NULL, NULL, &route), -ENETUNREACH);
}

TEST(on_link_destination_is_its_own_next_hop)
{
	struct net_route route = route_to("10.0.1.9");

	ck_assert_ip(route.next_hop, "10.0.1.9");
	ck_assert_ip(route.src, "10.0.1.1");
	ck_assert_dev(route.ifindex, "d1");
	ck_assert(!route.gateway && !route.local);
	ck_assert_uint_eq(route.hop_limit, 64);
}

TEST(gateway_is_the_next_hop)
{
	struct net_route route;

	run("ip route add default via 10.0.0.254");
	route = route_to("192.0.2.1");

	ck_assert_ip(route.next_hop, "10.0.0.254");
	ck_assert_ip(route.src, "10.0.0.1");
	ck_assert(route.gateway);
}

TEST(link_local_gateway_is_pinned_to_its_interface)
{
	struct net_route route;

	add_ip6("2001:db8::1", "d0");
	run("ip route add default via fe80::1 dev d0");
	route = route_to("2001:db8:1::1");

	ck_assert_ip(route.next_hop, "fe80::1%d0");
	ck_assert_ip(route.src, "2001:db8::1");
	ck_assert(route.gateway);
}

TEST(ipv4_route_may_go_through_an_ipv6_router)
{
	struct net_route route;

	run("ip route add 192.0.2.0/24 via inet6 fe80::1 dev d0");
	route = route_to("192.0.2.1");

	ck_assert_ip(route.next_hop, "fe80::1%d0");
	ck_assert_ip(route.src, "10.0.0.1");
}

TEST(given_source_is_kept)
{
	struct net_route route;

	run("ip addr add 10.0.0.2/24 dev d0");
	ck_assert_int_eq(lookup("10.0.0.9", "10.0.0.2", NULL, &route), 0);
	ck_assert_ip(route.src, "10.0.0.2");
}

TEST(wildcard_source_leaves_the_choice_to_the_kernel)
{
	struct net_route route;

	ck_assert_int_eq(lookup("10.0.0.9", "0.0.0.0", NULL, &route), 0);
	ck_assert_ip(route.src, "10.0.0.1");
}

TEST(given_source_chooses_among_rules)
{
	struct net_route route;

	run("ip rule add from 10.0.1.1 table 100");
	run("ip route add default via 10.0.1.254 table 100");
	run("ip route add default via 10.0.0.254");
	ck_assert_int_eq(lookup("192.0.2.1", "10.0.1.1", NULL, &route), 0);
	ck_assert_ip(route.next_hop, "10.0.1.254");
}

/* By number: a small system has no /etc/protocols. */
static const char *const port_rules[] = {
	"ipproto 17", "ipproto 17 dport 4791", "ipproto 6", "ipproto 58",
	"dport 4791", "sport 1-65534",
};

/* The kernel's connection manager resolves addresses without a protocol. */
TEST_LOOP(rule_of_a_protocol_or_port_is_not_for_a_path, 0, N(port_rules))
{
	struct net_route route;

	run("ip rule add to 10.0.0.9 %s table 100", port_rules[_i]);
	run("ip route add unreachable default table 100");
	run("ip -6 rule add to 2001:db8::9 %s table 100", port_rules[_i]);
	run("ip -6 route add unreachable default table 100");
	add_ip6("2001:db8::1", "d0");
	run("ip -6 route add 2001:db8::/64 dev d0");
	ck_assert_int_eq(lookup("10.0.0.9", NULL, NULL, &route), 0);
	ck_assert_int_eq(lookup("2001:db8::9", NULL, NULL, &route), 0);
}

TEST(rule_of_root_is_for_all_paths)
{
	struct net_route route;

	run("ip rule add to 10.0.0.9 uidrange 0-0 table 100");
	run("ip route add unreachable default table 100");
	ck_assert_int_eq(lookup("10.0.0.9", NULL, NULL, &route), -EHOSTUNREACH);
}

TEST(given_interface_chooses_the_source)
{
	struct net_route route;

	add_net("d2", "10.0.0.3/24");
	ck_assert_int_eq(lookup("10.0.0.9", NULL, "d2", &route), 0);
	ck_assert_ip(route.src, "10.0.0.3");
	ck_assert_dev(route.ifindex, "d2");
}

TEST(source_of_another_family_is_refused)
{
	struct net_route route;

	ck_assert_int_eq(lookup("10.0.0.9", "::1", NULL, &route), -EINVAL);
}

TEST_LOOP(own_address_is_local_to_the_interface_that_has_it, 0, 3)
{
	static const char *const own[] = { "10.0.1.1", "2001:db8::1", "fe80::5%d1" };
	struct net_route route;

	add_ip6("2001:db8::1", "d1");
	add_ip6("fe80::5", "d1");
	route = route_to(own[_i]);

	ck_assert(route.local);
	ck_assert_dev(route.ifindex, "d1");
	ck_assert_ip(route.src, own[_i]);
}

TEST(other_own_address_is_local_to_the_destination)
{
	struct net_route route;

	ck_assert_int_eq(lookup("10.0.1.1", "10.0.0.1", NULL, &route), 0);
	ck_assert(route.local);
	ck_assert_ip(route.src, "10.0.0.1");
	ck_assert_dev(route.ifindex, "d1");
}

TEST_LOOP(own_address_stays_local_when_its_interface_is_given, 0, 2)
{
	static const char *const own[] = { "10.0.1.1", "2001:db8::1" };
	struct net_route route;

	add_ip6("2001:db8::1", "d1");
	ck_assert_int_eq(lookup(own[_i], own[_i], "d1", &route), 0);
	ck_assert(route.local);
	ck_assert_dev(route.ifindex, "d1");
}

TEST(address_on_lo_too_is_local_to_the_device)
{
	struct net_route route;

	run("ip addr add 10.0.1.1/32 dev lo");
	route = route_to("10.0.1.1");
	ck_assert_dev(route.ifindex, "d1");
}

TEST_LOOP(loopback_address_is_local_to_lo, 0, 2)
{
	struct net_route route = route_to(_i ? "::1" : "127.0.0.1");

	ck_assert(route.local);
	ck_assert_dev(route.ifindex, "lo");
}

static int leads_by(const char *dst, const char *src, const char *dev)
{
	union addr to = ip(dst), from = ip(src);

	return net_route_leads_by(&to, &from, if_nametoindex(dev));
}

TEST(route_by_an_interface_is_distinguished_from_a_guess)
{
	struct net_route route;

	ck_assert_int_eq(lookup("10.0.0.9", "10.0.1.1", "d1", &route),
			 0); /* as if it were on-link */
	ck_assert_int_eq(leads_by("10.0.0.9", "10.0.1.1", "d1"), -EHOSTUNREACH);
	ck_assert_int_eq(leads_by("10.0.0.9", "10.0.0.1", "d0"), 0);
}

TEST(route_with_several_next_hops_leads_by_each)
{
	run("ip route add 192.0.2.0/24 nexthop via 10.0.0.254 nexthop via 10.0.1.254");
	ck_assert_int_eq(leads_by("192.0.2.1", "10.0.0.1", "d0"), 0);
	ck_assert_int_eq(leads_by("192.0.2.1", "10.0.1.1", "d1"), 0);
}

TEST(prohibited_route_is_an_error)
{
	run("ip route add prohibit 192.0.2.0/24");
	ck_assert_int_lt(leads_by("192.0.2.1", "10.0.0.1", "d0"), 0);
}

TEST(link_local_without_scope_follows_the_routes)
{
	struct net_route route;

	run("ip -6 route add fe80::/64 dev d1 metric 1");
	route = route_to("fe80::9");
	ck_assert_dev(route.ifindex, "d1");
	ck_assert_ip(route.next_hop, "fe80::9%d1");
}

TEST(own_link_local_without_scope_is_local_to_the_interface_that_has_it)
{
	struct net_route route;

	add_ip6("fe80::5", "d1");
	route = route_to("fe80::5");
	ck_assert(route.local);
	ck_assert_dev(route.ifindex, "d1");
	ck_assert_ip(route.src, "fe80::5%d1");
}

TEST(link_local_follows_its_scope)
{
	struct net_route route;

	add_ip6("fe80::5", "d1");
	run("ip -6 addr del $(ip -6 -br addr show d1 | tr ' ' '\\n' | grep fe80 | grep -v ^fe80::5/)"
	    " dev d1");
	route = route_to("fe80::9%d1");

	ck_assert_dev(route.ifindex, "d1");
	ck_assert_ip(route.next_hop, "fe80::9%d1");
	ck_assert_ip(route.src, "fe80::5%d1");
}

TEST(interface_comes_before_the_scope_of_the_destination)
{
	struct net_route route;

	ck_assert_int_eq(lookup("fe80::9%d1", NULL, "d0", &route), 0);
	ck_assert_dev(route.ifindex, "d0");
	ck_assert_ip(route.next_hop, "fe80::9%d0");
}

TEST(scope_of_the_source_comes_before_that_of_the_destination)
{
	struct net_route route;

	add_ip6("fe80::5", "d0");
	ck_assert_int_eq(lookup("fe80::9%d1", "fe80::5%d0", NULL, &route), 0);
	ck_assert_dev(route.ifindex, "d0");
	ck_assert_ip(route.next_hop, "fe80::9%d0");
}

TEST(scope_of_the_source_and_interface_must_agree)
{
	struct net_route route;

	add_ip6("fe80::5", "d0");
	ck_assert_int_eq(lookup("fe80::9", "fe80::5%d0", "d1", &route), -EINVAL);
}

static const struct {
	const char *type;
	int rc;
} dead_ends[] = {
	{ "prohibit", -EACCES },
	{ "unreachable", -EHOSTUNREACH },
	{ "blackhole", -EINVAL },
};

TEST_LOOP(unreachable_route_has_its_error_v4, 0, N(dead_ends))
{
	struct net_route route;

	run("ip route add %s 192.0.2.0/24", dead_ends[_i].type);
	ck_assert_int_eq(lookup("192.0.2.1", NULL, NULL, &route), dead_ends[_i].rc);
}

TEST_LOOP(unreachable_route_has_its_error_v6, 0, N(dead_ends))
{
	struct net_route route;

	run("ip -6 route add %s 2001:db8:9::/48", dead_ends[_i].type);
	ck_assert_int_eq(lookup("2001:db8:9::1", NULL, NULL, &route), dead_ends[_i].rc);
}

TEST(hop_limit_is_the_routes)
{
	run("ip route add 192.0.2.0/24 via 10.0.0.254 hoplimit 7");
	ck_assert_uint_eq(route_to("192.0.2.1").hop_limit, 7);
}

static const struct {
	const char *setting;
	int is;
	const char *dst;
	uint8_t limit;
} hop_limits[] = {
	{ "ipv4/ip_default_ttl", 33, "10.0.0.9", 33 },
	{ "ipv4/ip_default_ttl", 33, "10.0.0.1", 33 },
	{ "ipv6/conf/d0/hop_limit", 44, "fd00::9", 44 },
	{ "ipv6/conf/d1/hop_limit", 44, "fd00::9", 64 },
};

TEST_LOOP(route_without_a_hop_limit_has_the_hosts_or_the_interfaces, 0, N(hop_limits))
{
	run("ip -6 route add fd00::/64 dev d0");
	run("echo %d > /proc/sys/net/%s", hop_limits[_i].is, hop_limits[_i].setting);
	ck_assert_uint_eq(route_to(hop_limits[_i].dst).hop_limit, hop_limits[_i].limit);
}

TEST(multicast_follows_its_route)
{
	struct net_route route;

	run("ip route add 239.0.0.0/8 dev d1");
	route = route_to("239.1.2.3");

	ck_assert_dev(route.ifindex, "d1");
	ck_assert_int_eq(net_neigh_state(&route), NET_NEIGH_KNOWN);
}

TEST(link_local_group_follows_its_scope)
{
	ck_assert_dev(route_to("ff02::1234%d1").ifindex, "d1");
	ck_assert_dev(route_to("ff02::1234%d0").ifindex, "d0");
}

/* Each change, and the next hop of "192.0.2.1" before and after. */
static const struct {
	const char *before;
	const char *change;
	int rc;
	const char *next_hop;
} changes[] = {
	{ "ip route add default via 10.0.0.254", "ip route add 192.0.2.0/24 via 10.0.1.254", 0,
	  "10.0.1.254" },
	{ "ip route add default via 10.0.0.254", "ip route del default", -ENETUNREACH, NULL },
	{ "ip route add default via 10.0.0.254", "ip link set d0 down", -ENETUNREACH, NULL },
	{ "ip route add default via 10.0.0.254", "ip addr del 10.0.0.1/24 dev d0", -ENETUNREACH,
	  NULL },
	{ "ip route add default via 10.0.0.254; ip route add default via 10.0.1.254 table 100",
	  "ip rule add to 192.0.2.0/24 table 100", 0, "10.0.1.254" },
	{ "ip nexthop add id 1 via 10.0.0.254 dev d0; ip route add default nhid 1",
	  "ip nexthop replace id 1 via 10.0.1.254 dev d1", 0, "10.0.1.254" },
};

TEST_LOOP(change_affects_the_next_lookup, 0, N(changes))
{
	struct net_route route;

	run("%s", changes[_i].before);
	ck_assert_ip(route_to("192.0.2.1").next_hop, "10.0.0.254");
	run("%s", changes[_i].change);

	ck_assert_int_eq(lookup("192.0.2.1", NULL, NULL, &route), changes[_i].rc);
	if (!changes[_i].rc)
		ck_assert_ip(route.next_hop, changes[_i].next_hop);
}
