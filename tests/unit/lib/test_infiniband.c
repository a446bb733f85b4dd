/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The peer's end of paths and partitions (lib/path/path.h, lib/path/partition.h), with a kernel
 * that has an IP over InfiniBand interface: net_request() here answers with messages in the
 * kernel's format, as no test machine has such an interface.
 */
#include <endian.h>
#include <errno.h>
#include <linux/neighbour.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <netlink/msg.h>
#include <stdlib.h>
#include <string.h>

#include "lib/net/internal.h"
#include "lib/path/partition.h"
#include "lib/path/path.h"
#include "tests/unit/lib/fake_id.h"
#include "tests/unit/test.h"

#define IB0	4711 /* an interface that this host does not have */
#define PKEY	0x8005
#define HW_PEER "\x80\x00\x02\x08\xfe\x80\0\0\0\0\0\0\0\x02\xc9\x03\0\x1a\x2b\x3d"
#define HW_OWN	"\x80\x00\x02\x09\xfe\x80\0\0\0\0\0\0\0\x02\xc9\x03\0\x1a\x2b\x11"
#define HW_ALL	"\x00\xff\xff\xff\xff\x12\x40\x1b\x80\x05\0\0\0\0\0\0\xff\xff\xff\xff"

static struct port port;
static int peer_hw_bytes;

static const struct mad_gid peer_gid = { { 0xfe, 0x80, [8] = 0x00, 0x02, 0xc9, 0x03, 0x00, 0x1a,
					   0x2b, 0x3d } };

/* --- the kernel ---------------------------------------------------------- */

static bool kernel_is_fake;

int __real_net_request(struct nl_msg *msg, int (*take)(struct nlmsghdr *hdr, void *arg), void *arg);
int __wrap_net_request(struct nl_msg *msg, int (*take)(struct nlmsghdr *hdr, void *arg), void *arg);

static struct nl_msg *link_message(void)
{
	struct nl_msg *msg = nlmsg_alloc_simple(RTM_NEWLINK, 0);
	struct ifinfomsg ifi = { .ifi_type = ARPHRD_INFINIBAND,
				 .ifi_index = IB0,
				 .ifi_flags = IFF_UP };

	nlmsg_append(msg, &ifi, sizeof(ifi), NLMSG_ALIGNTO);
	nla_put_string(msg, IFLA_IFNAME, "ib0.8005");
	nla_put_u32(msg, IFLA_MTU, 2044);
	nla_put(msg, IFLA_ADDRESS, 20, HW_OWN);
	nla_put(msg, IFLA_BROADCAST, 20, HW_ALL);
	return msg;
}

static struct nl_msg *neigh_message(const struct nlmsghdr *asked)
{
	struct nl_msg *msg = nlmsg_alloc_simple(RTM_NEWNEIGH, 0);
	struct ndmsg ndm = *(const struct ndmsg *)nlmsg_data(asked);
	const struct nlattr *dst =
		nlmsg_find_attr((struct nlmsghdr *)(uintptr_t)asked, sizeof(ndm), NDA_DST);

	ndm.ndm_state = NUD_REACHABLE;
	nlmsg_append(msg, &ndm, sizeof(ndm), NLMSG_ALIGNTO);
	nla_put(msg, NDA_DST, nla_len(dst), nla_data(dst));
	nla_put(msg, NDA_LLADDR, peer_hw_bytes, HW_PEER);
	return msg;
}

int __wrap_net_request(struct nl_msg *msg, int (*take)(struct nlmsghdr *hdr, void *arg), void *arg)
{
	const struct nlmsghdr *asked = nlmsg_hdr(msg);
	struct nl_msg *answer;
	int rc;

	if (!kernel_is_fake)
		return __real_net_request(msg, take, arg);
	answer = asked->nlmsg_type == RTM_GETLINK ? link_message() : neigh_message(asked);
	rc = take(nlmsg_hdr(answer), arg);
	nlmsg_free(answer);
	nlmsg_free(msg);
	return rc;
}

/* --- the peer's end ------------------------------------------------------ */

static struct path path_to(const char *ip, bool gateway)
{
	struct path path = { .gid = { .verbs = &fake.verbs.context, .port_num = 1 },
			     .port = &port };

	path.route.ifindex = IB0;
	path.route.gateway = gateway;
	path.route.next_hop.sa.sa_family = strchr(ip, ':') ? AF_INET6 : AF_INET;
	if (strchr(ip, ':'))
		path.route.next_hop.in6.sin6_addr = in6addr_any;
	path.route.next_hop.in4.sin_addr.s_addr = htobe32(0x0a000002);
	if (strchr(ip, ':'))
		path.route.next_hop.in6.sin6_addr.s6_addr[0] = 0x20;
	return path;
}

static int set_peer(struct path *path)
{
	union addr peer = path->route.next_hop;

	if (!path->loopback)
		path_ask_port(path);
	return path_set_peer(path, &peer);
}

static void begin(void)
{
	static const uint16_t pkeys[FAKE_PKEYS] = { 0xffff, 0x0005, 0x8006 };

	kernel_is_fake = true;
	fake.port[0] = (struct ibv_port_attr){ .pkey_tbl_len = 3 };
	memcpy(fake.pkey, pkeys, sizeof(pkeys));
	peer_hw_bytes = NET_IPOIB_HW_BYTES;
	port = (struct port){ .device = fake_device_list(), .port_num = 1 };
}

FIXTURE(begin, NULL);

TEST_LOOP(link_address_of_the_neighbour_has_the_gid, 0, 2)
{
	struct path path = path_to(_i ? "2001::2" : "10.0.0.2", false);

	ck_assert_int_eq(set_peer(&path), 0);
	ck_assert_mem_eq(&path.dgid, &peer_gid, sizeof(peer_gid));
}

TEST(broadcast_address_of_the_interface_has_the_pkey)
{
	struct path path = path_to("10.0.0.2", false);

	ck_assert_int_eq(set_peer(&path), 0);
	ck_assert_uint_eq(path.pkey, PKEY);
	ck_assert_uint_eq(path.pkey_index, 1); /* as a limited member */
}

TEST(link_address_of_this_host_is_that_of_its_interface)
{
	struct path path = path_to("10.0.0.2", false);

	path.route.local = true;
	ck_assert_int_eq(set_peer(&path), 0);
	ck_assert_mem_eq(&path.dgid, &HW_OWN[NET_IPOIB_GID_AT], 16);
}

TEST(link_address_of_a_router_is_not_used)
{
	struct path path = path_to("10.0.0.2", true);

	ck_assert_int_eq(set_peer(&path), -EADDRNOTAVAIL);
}

TEST(link_address_of_a_group_is_that_of_its_mgid)
{
	static const uint8_t mgid[] = { 0xff, 0x12, 0x40, 0x1b, 0x80, 0x05, 0, 0,
					0,    0,    0,	  0,	0x0f, 0x01, 1, 7 };
	struct path path = path_to("10.0.0.2", false);

	path.route.next_hop.in4.sin_addr.s_addr = htobe32(0xef010107); /* 239.1.1.7 */
	peer_hw_bytes = 0;
	ck_assert_int_eq(set_peer(&path), 0);
	ck_assert_mem_eq(&path.dgid, mgid, sizeof(mgid));
	ck_assert_uint_eq(path.pkey, PKEY);
}

TEST(link_address_of_another_kind_is_refused)
{
	static const struct mad_gid nobody;
	struct path path = path_to("10.0.0.2", false);

	peer_hw_bytes = 6;
	ck_assert_int_eq(set_peer(&path), -EHOSTUNREACH);
	ck_assert_mem_eq(&path.dgid, &nobody, sizeof(nobody));
}

TEST(gid_of_a_roce_peer_is_its_address_also_behind_a_router)
{
	static const uint8_t gid[] = { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 0, 2 };
	struct path path = path_to("10.0.0.2", true);

	path.gid.type = IBV_GID_TYPE_ROCE_V2;
	ck_assert_int_eq(set_peer(&path), 0);
	ck_assert_mem_eq(&path.dgid, gid, sizeof(gid));
}

TEST(loopback_address_has_no_peer)
{
	struct path path = { .loopback = true };

	ck_assert_int_eq(set_peer(&path), 0);
}

TEST(partition_of_groups_is_that_of_the_interface)
{
	union addr local = { .in4.sin_family = AF_INET };
	struct partition part;

	ck_assert_int_eq(partition_of(&local, IB0, &part), 0);
	ck_assert_uint_eq(part.pkey, PKEY);
	ck_assert_uint_eq(part.scope, 2);
	ck_assert_mem_eq(&part.broadcast, &HW_ALL[4], 16);
}

TEST(partition_of_an_af_ib_address_is_in_it)
{
	union addr local = { .ib.sib_family = AF_IB, .ib.sib_pkey = htobe16(PKEY) };
	struct partition part;

	ck_assert_int_eq(partition_of(&local, 0, &part), 0);
	ck_assert_mem_eq(&part.broadcast, &HW_ALL[4], 16);
}
