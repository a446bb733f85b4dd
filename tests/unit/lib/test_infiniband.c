/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * lib/path/infiniband.c, with a kernel that has an IP over InfiniBand interface: net_request() here
 * answers with messages in the kernel's format, as no test machine has such an interface. And what
 * becomes of LIDs, P_Keys and hop limits in messages and address vectors.
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
#include "lib/path/infiniband.h"
#include "tests/unit/lib/fake_verbs.h"
#include "tests/unit/test.h"

#define IB0	4711 /* an interface that this host does not have */
#define PKEY	0x8005
#define HW_PEER "\x80\x00\x02\x08\xfe\x80\0\0\0\0\0\0\0\x02\xc9\x03\0\x1a\x2b\x3d"
#define HW_OWN	"\x80\x00\x02\x09\xfe\x80\0\0\0\0\0\0\0\x02\xc9\x03\0\x1a\x2b\x11"
#define HW_ALL	"\x00\xff\xff\xff\xff\x12\x40\x1b\x80\x05\0\0\0\0\0\0\xff\xff\xff\xff"

static struct ibv_context verbs;
static int peer_hw_bytes;

static const struct mad_gid peer_gid = {
	{0xfe, 0x80, [8] = 0x00, 0x02, 0xc9, 0x03, 0x00, 0x1a, 0x2b, 0x3d}
};

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

/* --- who the peer is ----------------------------------------------------- */

static struct id_path path_to(const char *ip, bool gateway)
{
	struct id_path path = {
		.gid = {.verbs = &verbs, .port_num = 1}
	};

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

static void begin(void)
{
	static const uint16_t pkeys[FAKE_PKEYS] = { 0xffff, 0x0005, 0x8006 };

	kernel_is_fake = true;
	fake.port[0] = (struct ibv_port_attr){ .pkey_tbl_len = 3 };
	memcpy(fake.pkey, pkeys, sizeof(pkeys));
	peer_hw_bytes = NET_IPOIB_HW_BYTES;
}

FIXTURE(begin, NULL);

TEST_LOOP(link_address_of_the_neighbour_has_the_gid, 0, 2)
{
	struct id_path path = path_to(_i ? "2001::2" : "10.0.0.2", false);

	ck_assert_int_eq(infiniband_meet(&path), 0);
	ck_assert(path.has_peer_gid);
	ck_assert_mem_eq(&path.peer_gid, &peer_gid, sizeof(peer_gid));
}

TEST(broadcast_address_of_the_interface_has_the_pkey)
{
	struct id_path path = path_to("10.0.0.2", false);

	ck_assert_int_eq(infiniband_meet(&path), 0);
	ck_assert_uint_eq(path.pkey, PKEY);
	ck_assert_uint_eq(path.pkey_index, 1); /* as a limited member */
}

TEST(link_address_of_this_host_is_that_of_its_interface)
{
	struct id_path path = path_to("10.0.0.2", false);

	path.route.local = true;
	ck_assert_int_eq(infiniband_meet(&path), 0);
	ck_assert_mem_eq(&path.peer_gid, HW_OWN + NET_IPOIB_GID_AT, 16);
}

TEST(router_has_not_the_gid_of_the_peer)
{
	struct id_path path = path_to("10.0.0.2", true);

	ck_assert_int_eq(infiniband_meet(&path), -EADDRNOTAVAIL);
}

TEST(link_address_of_a_group_is_that_of_its_mgid)
{
	static const uint8_t mgid[] = { 0xff, 0x12, 0x40, 0x1b, 0x80, 0x05, 0, 0,
					0,    0,    0,	  0,	0x0f, 0x01, 1, 7 };
	struct id_path path = path_to("10.0.0.2", false);

	path.route.next_hop.in4.sin_addr.s_addr = htobe32(0xef010107); /* 239.1.1.7 */
	peer_hw_bytes = 0;
	ck_assert_int_eq(infiniband_meet(&path), 0);
	ck_assert_mem_eq(&path.peer_gid, mgid, sizeof(mgid));
	ck_assert_uint_eq(path.pkey, PKEY);
}

TEST(link_address_of_another_kind_is_nobody)
{
	struct id_path path = path_to("10.0.0.2", false);

	peer_hw_bytes = 6;
	ck_assert_int_eq(infiniband_meet(&path), -EHOSTUNREACH);
	ck_assert(!path.has_peer_gid);
}

TEST(partition_of_groups_is_that_of_the_interface)
{
	struct infiniband_partition part;
	struct id id = { .path.gid.ifindex = IB0 };

	id.claim.local.sa.sa_family = AF_INET;
	ck_assert_int_eq(infiniband_partition(&id, &part), 0);
	ck_assert_uint_eq(part.pkey, PKEY);
	ck_assert_uint_eq(part.scope, 2);
	ck_assert_mem_eq(&part.broadcast, HW_ALL + 4, 16);
}

TEST(partition_of_an_af_ib_address_is_in_it)
{
	struct infiniband_partition part;
	struct id id = { .state = ID_IDLE };

	id.claim.local.ib.sib_family = AF_IB;
	id.claim.local.ib.sib_pkey = htobe16(PKEY);
	ck_assert_int_eq(infiniband_partition(&id, &part), 0);
	ck_assert_mem_eq(&part.broadcast, HW_ALL + 4, 16);
}

/* --- LIDs ---------------------------------------------------------------- */

static struct id id_with_path(uint8_t hop_limit)
{
	struct id id = {
		.path = {.gid = { .verbs = &verbs, .port_num = 1, .gid_index = 2 },
			  .dlid = 0x12,
			  .slid = 0x27,
			  .sl = 3,
			  .rate = 7,
			  .pkey_index = 1,
			  .flow_label = 0xabcde,
			  .traffic_class = 9,
			  .has_peer_gid = true,
			  .peer_gid = peer_gid,
			  .given.hop_limit = hop_limit}
	};

	return id;
}

TEST(address_vector_of_no_hops_is_a_lid)
{
	struct id id = id_with_path(0);
	struct ibv_ah_attr ah;

	infiniband_ah(&id, &ah);
	ck_assert_uint_eq(ah.dlid, 0x12);
	ck_assert_uint_eq(ah.sl, 3);
	ck_assert_uint_eq(ah.static_rate, 7);
	ck_assert_uint_eq(ah.src_path_bits, 0);
	ck_assert_uint_eq(ah.is_global, 0);
}

TEST(path_bits_are_as_many_as_the_port_has)
{
	struct id id = id_with_path(0);
	struct mad_path path;
	struct ibv_ah_attr ah;

	fake.port[0].lmc = 2;
	infiniband_ah(&id, &ah);
	infiniband_mad_path(&id, &path);
	ck_assert_uint_eq(ah.src_path_bits, 3);
	ck_assert_uint_eq(path.path_bits, 3);
}

/* Out of the subnet (64 hops), and within it (1), as SR-IOV needs one there, too. */
TEST_LOOP(address_vector_with_hops_has_a_global_route_header, 0, 2)
{
	uint8_t hops = _i ? 64 : 1;
	struct id id = id_with_path(hops);
	struct ibv_ah_attr ah;

	infiniband_ah(&id, &ah);
	ck_assert_uint_eq(ah.is_global, 1);
	ck_assert_uint_eq(ah.dlid, 0x12);
	ck_assert_mem_eq(&ah.grh.dgid, &peer_gid, sizeof(peer_gid));
	ck_assert_uint_eq(ah.grh.sgid_index, 2);
	ck_assert_uint_eq(ah.grh.hop_limit, hops);
	ck_assert_uint_eq(ah.grh.flow_label, 0xabcde);
	ck_assert_uint_eq(ah.grh.traffic_class, 9);
}

TEST_LOOP(messages_go_the_way_of_the_data, 0, 3)
{
	struct id id = id_with_path((uint8_t)_i);
	struct mad_path path;

	infiniband_mad_path(&id, &path);
	ck_assert_uint_eq(path.dlid, 0x12);
	ck_assert_uint_eq(path.sl, 3);
	ck_assert_uint_eq(path.pkey_index, 1);
	ck_assert_int_eq(path.grh, _i > 0);
	ck_assert_uint_eq(path.hop_limit, _i);
}

TEST_LOOP(req_has_lids_where_the_peer_is_on_the_subnet, 0, 2)
{
	struct cm_req_path req = { .local_lid = 0, .remote_lid = 0 };
	struct id id = id_with_path((uint8_t)_i);

	infiniband_req_path(&id, &req);
	ck_assert_uint_eq(req.local_lid, 0x27);
	ck_assert_uint_eq(req.remote_lid, 0x12);
}

TEST(req_keeps_permissive_lids_elsewhere)
{
	struct cm_req_path req = { .local_lid = 0xffff, .remote_lid = 0xffff };
	struct id id = id_with_path(64);

	infiniband_req_path(&id, &req);
	ck_assert_uint_eq(req.local_lid, 0xffff);
	ck_assert_uint_eq(req.remote_lid, 0xffff);
}
