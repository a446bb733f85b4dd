/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Interfaces and their addresses (lib/net/iface.c) against the running kernel: each test makes its
 * own network.
 */
#include <errno.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <string.h>

#include "lib/net/hop.h"
#include "lib/net/netlink.h"
#include "tests/unit/net/nets.h"
#include "tests/unit/test.h"

NEEDS(netns_allowed);
FIXTURE(two_nets, NULL);

TEST(moved_address_is_found_on_its_new_interface)
{
	union addr addr = ip("10.0.0.1");
	struct net_iface iface;

	ck_assert_int_eq(net_iface_of_addr(&addr, &iface), 0);
	ck_assert_str_eq(iface.name, "d0");
	run("ip addr del 10.0.0.1/24 dev d0; ip addr add 10.0.0.1/24 dev d1");
	ck_assert_int_eq(net_iface_of_addr(&addr, &iface), 0);
	ck_assert_str_eq(iface.name, "d1");
}

TEST(foreign_address_has_no_interface)
{
	union addr addr = ip("10.0.0.9");
	struct net_iface iface;

	ck_assert_int_eq(net_iface_of_addr(&addr, &iface), -EADDRNOTAVAIL);
}

TEST(link_local_address_belongs_to_its_scope_only)
{
	struct net_iface iface;
	union addr here, there;

	add_ip6("fe80::5", "d1");
	here = ip("fe80::5%d1");
	there = ip("fe80::5%d0");
	ck_assert_int_eq(net_iface_of_addr(&here, &iface), 0);
	ck_assert_int_eq(net_iface_of_addr(&there, &iface), -EADDRNOTAVAIL);
}

/* As two VRFs may. */
TEST(gids_of_two_interfaces_with_the_same_address_are_both_here)
{
	const union addr addr = ip("10.0.0.1");
	const struct mad_gid gid = mad_gid_of_ipv4(&addr.in4.sin_addr);
	struct gid_entry entry = { .ifindex = if_nametoindex("d0") };

	memcpy(&entry.gid, &gid, sizeof(gid));
	ck_assert(hop_is_here(&entry));
	entry.ifindex = if_nametoindex("d1");
	ck_assert(!hop_is_here(&entry));
	run("ip addr add 10.0.0.1/32 dev d1");
	ck_assert(hop_is_here(&entry));
	entry.ifindex = if_nametoindex("d0");
	ck_assert(hop_is_here(&entry));
}

static bool is_named(const struct net_iface *iface, const void *name)
{
	return !strcmp(iface->name, name);
}

/* As those of the partitions of an InfiniBand port. */
TEST(of_interfaces_with_one_address_the_fitting_one_is_found)
{
	union addr addr = ip("fe80::5");
	struct net_iface iface;

	add_ip6("fe80::5", "d0");
	add_ip6("fe80::5", "d1");
	ck_assert_int_eq(net_iface_with_addr(&addr, is_named, "d0", &iface), 0);
	ck_assert_int_eq(net_iface_with_addr(&addr, is_named, "d1", &iface), 0);
	ck_assert_str_eq(iface.name, "d1");
	ck_assert_int_eq(net_iface_with_addr(&addr, is_named, "lo", &iface), -EADDRNOTAVAIL);
}

TEST(many_addresses_are_all_found)
{
	struct net_iface iface;

	run("for i in $(seq 1 250); do echo addr add 10.9.0.$i/32 dev d1; done | ip -b -");
	for (int i = 1; i <= 250; i++) {
		union addr addr = ip("10.9.0.0");

		addr.in4.sin_addr.s_addr |= htonl(i);
		ck_assert_int_eq(net_iface_of_addr(&addr, &iface), 0);
		ck_assert_str_eq(iface.name, "d1");
	}
}

TEST(interface_has_its_attributes)
{
	static const uint8_t hw[] = { 2, 0, 0, 0, 0, 7 };
	struct net_iface iface;

	run("ip link set d0 mtu 4200 address 02:00:00:00:00:07");
	ck_assert_int_eq(net_iface_get(if_nametoindex("d0"), &iface), 0);
	ck_assert_str_eq(iface.name, "d0");
	ck_assert_uint_eq(iface.mtu, 4200);
	ck_assert_uint_eq(iface.arp_type, ARPHRD_ETHER);
	ck_assert(iface.up && !iface.loopback);
	ck_assert_uint_eq(iface.hw_bytes, sizeof(hw));
	ck_assert_mem_eq(iface.hw_addr, hw, sizeof(hw));
}

TEST(changed_interface_is_read_again_at_once)
{
	unsigned int ifindex = if_nametoindex("d0");
	struct net_iface iface;

	ck_assert_int_eq(net_iface_get(ifindex, &iface), 0);
	run("ip link set d0 mtu 9000 down");
	ck_assert_int_eq(net_iface_get(ifindex, &iface), 0);
	ck_assert_uint_eq(iface.mtu, 9000);
	ck_assert(!iface.up);
	run("ip link del d0");
	ck_assert_int_eq(net_iface_get(ifindex, &iface), -ENODEV);
}

/* RFC 4862, 5.4. */
TEST(ipv6_address_is_not_used_before_duplicate_detection)
{
	union addr addr = ip("fd00:9::1");
	struct net_iface iface;

	run("echo 1 > /proc/sys/net/ipv6/conf/d0/accept_dad; "
	    "echo 1000 > /proc/sys/net/ipv6/conf/d0/dad_transmits; "
	    "ip addr add fd00:9::1/64 dev d0; "
	    "ip addr show dev d0 tentative | grep -q fd00:9::1");
	ck_assert_int_eq(net_iface_of_addr(&addr, &iface), -EADDRNOTAVAIL);
	run("ip addr del fd00:9::1/64 dev d0; ip addr add fd00:9::1/64 dev d0 nodad");
	ck_assert_int_eq(net_iface_of_addr(&addr, &iface), 0);
}
