/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Conversions of paths of both link layers (lib/path/path.h): records, messages, address vectors.
 */
#include <endian.h>
#include <errno.h>
#include <string.h>

#include "tests/unit/lib/path_rig.h"
#include "tests/unit/test.h"

FIXTURE(set_up, NULL);

/* --- the record ---------------------------------------------------------- */

static const struct sa_path odd_record = {
	.dgid = { { 0xfe, 0x80, [15] = 0x42 } },
	.sgid = { { 0xfe, 0x80, [15] = 0x22 } },
	.dlid = 0x12,
	.slid = 0x27,
	.flow_label = 0xabcde,
	.hop_limit = 9,
	.traffic_class = 0x51,
	.reversible = 1,
	.pkey = 0x8001,
	.sl = 3,
	.mtu = IBV_MTU_512,
	.rate = 7,
	.packet_life_time = 14,
};

TEST_LOOP(record_is_returned_unchanged_except_lids_of_roce, IBV_GID_TYPE_IB,
	  IBV_GID_TYPE_ROCE_V2 + 1)
{
	struct path path = path_of_type((enum ibv_gid_type)_i);
	bool has_lids = _i == IBV_GID_TYPE_IB;
	struct ibv_sa_path_rec shown;

	path_take_record(&path, &odd_record);
	path_to_record(&path, &shown);
	ck_assert_mem_eq(&shown.dgid, &odd_record.dgid, 16);
	ck_assert_mem_eq(&shown.sgid, &odd_record.sgid, 16);
	ck_assert_uint_eq(be16toh(shown.dlid), has_lids ? 0x12 : 0);
	ck_assert_uint_eq(be16toh(shown.slid), has_lids ? 0x27 : 0);
	ck_assert_uint_eq(be32toh(shown.flow_label), 0xabcde);
	ck_assert_uint_eq(shown.hop_limit, 9);
	ck_assert_uint_eq(shown.traffic_class, 0x51);
	ck_assert_int_eq(shown.reversible, 1);
	ck_assert_uint_eq(be16toh(shown.pkey), 0x8001);
	ck_assert_uint_eq(shown.sl, 3);
	ck_assert_uint_eq(shown.mtu, IBV_MTU_512);
	ck_assert_uint_eq(shown.rate, 7);
	ck_assert_uint_eq(shown.packet_life_time, 14);
}

TEST(infiniband_path_needs_a_query)
{
	struct port_claim claim = { .local.sa.sa_family = AF_INET };
	struct path_query query = { .claim = &claim, .service_id = 0x1061c3f, .tos = 0x20 };
	struct path path = path_of_type(IBV_GID_TYPE_IB);
	struct sa_msg msg;

	path.pkey = PKEY;
	path.gid.gid.raw[15] = 7;
	ck_assert_int_eq(path_complete(&path, &query, &msg), -EINPROGRESS);
	ck_assert_uint_eq(msg.path.service_id, 0x1061c3f);
	ck_assert_mem_eq(&msg.path.dgid, &peer_gid, sizeof(peer_gid));
	ck_assert_uint_eq(msg.path.sgid.raw[15], 7);
	ck_assert_uint_eq(msg.path.pkey, PKEY);
	ck_assert_uint_eq(msg.path.qos_class, 0x20);
	ck_assert(msg.sa.comp_mask & SA_PATH_QOS_CLASS);
	ck_assert(!(msg.sa.comp_mask & SA_PATH_TRAFFIC_CLASS));
}

TEST(query_has_the_traffic_class_of_an_ipv6_flow)
{
	struct port_claim claim = { .local.in6 = { .sin6_family = AF_INET6,
						   .sin6_flowinfo = htobe32(0x5abcdef0) } };
	struct path_query query = { .claim = &claim, .tos = 0x20 };
	struct path path = path_of_type(IBV_GID_TYPE_IB);
	struct sa_msg msg;

	ck_assert_int_eq(path_complete(&path, &query, &msg), -EINPROGRESS);
	ck_assert_uint_eq(msg.path.traffic_class, 0xab);
	ck_assert(!(msg.sa.comp_mask & SA_PATH_QOS_CLASS));
}

static int complete_roce(struct path *path, const struct path_query *query)
{
	struct sa_msg msg;

	*path = path_of_type(IBV_GID_TYPE_ROCE_V2);
	return path_complete(path, query, &msg);
}

TEST(roce_path_follows_from_route_and_options)
{
	struct port_claim claim = { .local.in4 = { .sin_family = AF_INET, .sin_port = htobe16(2) },
				    .peer.in4 = { .sin_family = AF_INET, .sin_port = htobe16(5) } };
	struct path_query query = { .claim = &claim,
				    .has_tos = true,
				    .tos = 0x68,
				    .has_packet_life_time = true,
				    .packet_life_time = 13 };
	struct path path;

	fake_net.mtu = 1024 + 96;
	fake_net.levels[1] = 5;
	ck_assert_int_eq(complete_roce(&path, &query), 0);
	ck_assert_uint_eq(path.mtu, IBV_MTU_1024);
	ck_assert_uint_eq(path.packet_life_time, 13);
	ck_assert_uint_eq(path.traffic_class, 0x68);
	ck_assert_uint_eq(path.sl, 5);
	ck_assert_uint_eq(path.flow_label, 2 * 31 + 5);
	ck_assert_uint_eq(path.hop_limit, 64);
	ck_assert_uint_eq(path.pkey, 0xffff);
}

TEST(unset_type_of_service_is_that_of_the_port)
{
	struct port_claim claim = { .local.sa.sa_family = AF_INET };
	struct path_query query = { .claim = &claim, .has_tos = true };
	struct path path;

	port.tos = 0x68;
	fake_net.levels[1] = 5;
	ck_assert_int_eq(complete_roce(&path, &query), 0);
	ck_assert_uint_eq(path.traffic_class, 0);
	query.has_tos = false;
	ck_assert_int_eq(complete_roce(&path, &query), 0);
	port.tos = 0;
	ck_assert_uint_eq(path.traffic_class, 0x68);
	ck_assert_uint_eq(path.sl, 5);
}

TEST_LOOP(mtu_of_a_roce_path_has_room_for_headers, IBV_MTU_256, IBV_MTU_4096)
{
	struct port_claim claim = { .local.sa.sa_family = AF_INET };
	struct path_query query = { .claim = &claim };
	struct path path;

	fake_net.mtu = (256u << _i) + 95; /* a byte less than the next size needs */
	ck_assert_int_eq(complete_roce(&path, &query), 0);
	ck_assert_int_eq(path.mtu, _i);
}

TEST(interface_with_a_small_mtu_has_no_roce_path)
{
	struct port_claim claim = { .local.sa.sa_family = AF_INET };
	struct path_query query = { .claim = &claim };
	struct path path;

	fake_net.mtu = 256 + 95;
	ck_assert_int_eq(complete_roce(&path, &query), -EINVAL);
}

/* --- in messages and address vectors ------------------------------------- */

static struct path path_with_hops(uint8_t hop_limit)
{
	struct sa_path record = odd_record;
	struct path path = path_of_type(IBV_GID_TYPE_IB);

	record.hop_limit = hop_limit;
	record.dgid = peer_gid;
	path_take_record(&path, &record);
	path.pkey_index = 1;
	return path;
}

TEST(address_vector_of_no_hops_is_a_lid)
{
	struct path path = path_with_hops(0);
	struct ibv_ah_attr ah;

	path_to_ah(&path, &ah);
	ck_assert_uint_eq(ah.dlid, 0x12);
	ck_assert_uint_eq(ah.sl, 3);
	ck_assert_uint_eq(ah.static_rate, 7);
	ck_assert_uint_eq(ah.src_path_bits, 0);
	ck_assert_uint_eq(ah.is_global, 0);
}

TEST(path_bits_are_as_many_as_the_port_has)
{
	struct mad_path mad_path;
	struct ibv_ah_attr ah;
	struct path path;

	fake.port[0].lmc = 2;
	path_prepare(&port);
	path = path_with_hops(0);
	path_to_ah(&path, &ah);
	path_to_mad(&path, &mad_path);
	ck_assert_uint_eq(ah.src_path_bits, 3);
	ck_assert_uint_eq(mad_path.path_bits, 3);
}

/* Beyond the subnet (64 hops), and within it (1), where SR-IOV needs one too. */
TEST_LOOP(address_vector_with_hops_has_a_global_route_header, 0, 2)
{
	uint8_t hops = _i ? 64 : 1;
	struct path path = path_with_hops(hops);
	struct ibv_ah_attr ah;

	path_to_ah(&path, &ah);
	ck_assert_uint_eq(ah.is_global, 1);
	ck_assert_uint_eq(ah.dlid, 0x12);
	ck_assert_mem_eq(&ah.grh.dgid, &peer_gid, sizeof(peer_gid));
	ck_assert_uint_eq(ah.grh.sgid_index, 2);
	ck_assert_uint_eq(ah.grh.hop_limit, hops);
	ck_assert_uint_eq(ah.grh.flow_label, 0xabcde);
	ck_assert_uint_eq(ah.grh.traffic_class, 0x51);
}

/* Whatever hops and rates the program sets: the kernel uses the route's, too. */
TEST(address_vector_of_roce_has_the_hops_of_the_route)
{
	struct path path = path_of_type(IBV_GID_TYPE_ROCE_V2);
	struct ibv_ah_attr ah;

	path_take_record(&path, &odd_record);
	path_to_ah(&path, &ah);
	ck_assert_uint_eq(ah.is_global, 1);
	ck_assert_uint_eq(ah.dlid, 0);
	ck_assert_uint_eq(ah.static_rate, 0);
	ck_assert_mem_eq(&ah.grh.dgid, &odd_record.dgid, 16);
	ck_assert_uint_eq(ah.grh.sgid_index, 2);
	ck_assert_uint_eq(ah.grh.hop_limit, 64);
	ck_assert_uint_eq(ah.grh.flow_label, 0xabcde);
	ck_assert_uint_eq(ah.grh.traffic_class, 0x51);
	ck_assert_uint_eq(ah.sl, 3);
}

TEST_LOOP(messages_take_the_path_of_the_data, 0, 3)
{
	struct path path = path_with_hops((uint8_t)_i);
	struct mad_path mad_path;

	path_to_mad(&path, &mad_path);
	ck_assert_uint_eq(mad_path.dlid, 0x12);
	ck_assert_uint_eq(mad_path.sl, 3);
	ck_assert_uint_eq(mad_path.pkey_index, 1);
	ck_assert_int_eq(mad_path.grh, _i > 0);
	ck_assert_uint_eq(mad_path.hop_limit, _i);
}

TEST(messages_over_roce_have_a_global_route_header)
{
	struct path path = path_of_type(IBV_GID_TYPE_ROCE_V1);
	struct mad_path mad_path;

	path.traffic_class = 0x68;
	path_to_mad(&path, &mad_path);
	ck_assert(mad_path.grh);
	ck_assert_uint_eq(mad_path.sgid_index, 2);
	ck_assert_uint_eq(mad_path.hop_limit, 64);
	ck_assert_uint_eq(mad_path.traffic_class, 0x68);
	ck_assert_mem_eq(&mad_path.dgid, &peer_gid, sizeof(peer_gid));
}

TEST_LOOP(req_has_lids_where_the_peer_is_on_the_subnet, 0, 2)
{
	struct path path = path_with_hops((uint8_t)_i);
	struct cm_req_path req;

	path_to_req(&path, 0, &req);
	ck_assert_uint_eq(req.local_lid, 0x27);
	ck_assert_uint_eq(req.remote_lid, 0x12);
	ck_assert_uint_eq(req.subnet_local, 1);
}

TEST(req_has_permissive_lids_elsewhere)
{
	struct path path = path_with_hops(64);
	struct cm_req_path req;

	path_to_req(&path, 0, &req);
	ck_assert_uint_eq(req.local_lid, 0xffff);
	ck_assert_uint_eq(req.remote_lid, 0xffff);
	ck_assert_uint_eq(req.subnet_local, 0);
}

TEST_LOOP(req_of_roce_has_no_lids_within_the_subnet, 0, 2)
{
	struct path path = path_of_type(IBV_GID_TYPE_ROCE_V2);
	struct cm_req_path req;

	path.hop_limit = _i ? 64 : 1;
	path.packet_life_time = 16;
	path_to_req(&path, 0, &req);
	ck_assert_uint_eq(req.local_lid, _i ? 0xffff : 0);
	ck_assert_uint_eq(req.remote_lid, _i ? 0xffff : 0);
	ck_assert_uint_eq(req.hop_limit, path.hop_limit);
	ck_assert_uint_eq(req.local_ack_timeout, 17);
}

TEST(roce_port_is_in_the_default_partition_only)
{
	struct path path = path_of_type(IBV_GID_TYPE_ROCE_V2);

	path.pkey = 0x7fff;
	ck_assert_int_eq(path_check_pkey(&path), 0);
	path.pkey = 0x8001;
	ck_assert_int_eq(path_check_pkey(&path), -ENOENT);
}

/* --- paths of requests ---------------------------------------------------- */

static struct cm_msg req_between(const struct mad_gid *peer, const struct mad_gid *us)
{
	struct cm_msg msg = { .hdr.attr_id = CM_ATTR_REQ };

	msg.req.pkey = PKEY;
	msg.req.path_mtu = IBV_MTU_2048;
	msg.req.primary = (struct cm_req_path){ .local_lid = 0x21,
						.remote_lid = 0x47,
						.local_gid = *peer,
						.remote_gid = *us,
						.flow_label = 0xabcde,
						.packet_rate = 7,
						.traffic_class = 9,
						.hop_limit = 1,
						.sl = 5,
						.local_ack_timeout = 18 };
	return msg;
}

static struct path read_ib_request(const struct cm_msg *msg, int expected)
{
	struct cm_conn conn = { .path = { .dlid = 0x33, .hop_limit = 2, .dgid = peer_gid } };
	struct path path;

	fake.gid[0].port_num = 1;
	fake.gid[0].gid_index = 0;
	path_prepare(&port);
	ck_assert_int_eq(path_of_request(&port, &conn, msg, &path), expected);
	return path;
}

TEST(request_over_infiniband_names_both_ends)
{
	struct cm_msg msg = req_between(&peer_gid, &own_gid);
	struct path path = read_ib_request(&msg, 0);

	ck_assert(path_is_native(&path));
	ck_assert_mem_eq(&path.dgid, &peer_gid, sizeof(peer_gid));
	ck_assert_mem_eq(&path.sgid, &own_gid, sizeof(own_gid));
	ck_assert_uint_eq(path.dlid, 0x21);
	ck_assert_uint_eq(path.slid, 0x47);
	ck_assert_uint_eq(path.pkey_index, 1);
	ck_assert_uint_eq(path.mtu, IBV_MTU_2048);
	ck_assert_uint_eq(path.sl, 5);
	ck_assert_uint_eq(path.rate, 7);
	ck_assert_uint_eq(path.flow_label, 0xabcde);
	ck_assert_uint_eq(path.traffic_class, 9);
	ck_assert_uint_eq(path.packet_life_time, 17);
}

TEST_LOOP(peer_without_a_lid_has_that_of_the_message, 0, 2)
{
	struct cm_msg msg = req_between(&peer_gid, &own_gid);
	struct path path;

	msg.req.primary.local_lid = _i ? 0xffff : 0;
	msg.req.primary.remote_lid = 0xffff;
	path = read_ib_request(&msg, 0);
	ck_assert_uint_eq(path.dlid, 0x33);
	ck_assert_uint_eq(path.slid, 0);
}

TEST(request_for_a_foreign_gid_is_refused)
{
	struct cm_msg msg = req_between(&own_gid, &peer_gid);

	read_ib_request(&msg, -EINVAL);
}

TEST(ip_address_of_another_interface_has_no_return_route)
{
	struct path path = path_of_type(IBV_GID_TYPE_IB);
	union addr peer = { .in4.sin_family = AF_INET };

	ck_assert_int_eq(path_find_return_route(&path, &fake_net.own, &peer), -EADDRNOTAVAIL);
}

TEST_LOOP(only_the_interfaces_partition_has_a_return_route, 0, 3)
{
	static const uint16_t pkeys[] = { 0x8001, 0x0001, 0xffff };
	struct path path = path_of_type(IBV_GID_TYPE_IB);
	union addr peer = fake_net.own;

	fake_net.hw_bytes = NET_IPOIB_HW_BYTES;
	memcpy(&fake_net.hw_addr[NET_IPOIB_GID_AT], &own_gid, sizeof(own_gid));
	fake_net.hw_broadcast[8] = 0x80; /* of P_Key 0x8001 */
	fake_net.hw_broadcast[9] = 0x01;
	memcpy(&path.gid.gid, &own_gid, sizeof(own_gid));
	path.pkey = pkeys[_i];
	ck_assert_int_eq(path_find_return_route(&path, &fake_net.own, &peer),
			 _i < 2 ? 0 : -EADDRNOTAVAIL);
}

/* On a port with the address 10.0.0.1, as its second GID. */
static uint32_t type_of_request = IBV_GID_TYPE_ROCE_V2;

static struct path read_roce_request(const struct cm_msg *msg, int expected)
{
	struct cm_conn conn = { .path = { .grh = true, .sgid_index = 1 } };
	union addr us = { .in4 = { .sin_family = AF_INET,
				   .sin_addr.s_addr = htobe32(0x0a000001) } };
	union addr peer = us;
	struct mad_gid gid = addr_to_gid(&us);
	struct path path;
	int err;

	peer.in4.sin_addr.s_addr = htobe32(0x0a000002);
	fake.port[0].link_layer = IBV_LINK_LAYER_ETHERNET;
	fake.port[0].state = IBV_PORT_ACTIVE;
	fake.port[0].gid_tbl_len = 2;
	fake.gid[0] = (struct ibv_gid_entry){ .gid_index = 1,
					      .port_num = 1,
					      .gid_type = type_of_request,
					      .ndev_ifindex = FAKE_IFINDEX };
	memcpy(&fake.gid[0].gid, &gid, sizeof(gid));
	err = path_of_request(&port, &conn, msg, &path);
	ck_assert(!path_is_native(&path));
	if (!err)
		err = path_find_return_route(&path, &us, &peer);
	ck_assert_int_eq(err, expected);
	return path;
}

TEST(request_over_roce_names_the_peer_and_the_route_the_hops)
{
	struct cm_msg msg = req_between(&peer_gid, &own_gid);
	struct path path = read_roce_request(&msg, 0);

	ck_assert_mem_eq(&path.dgid, &peer_gid, sizeof(peer_gid));
	ck_assert_uint_eq(path.gid.gid_index, 1);
	ck_assert_uint_eq(path.hop_limit, 64);
	ck_assert_uint_eq(path.dlid, 0);
	ck_assert_uint_eq(path.packet_life_time, 17);
}

TEST(request_by_roce_v1_to_a_port_with_v2_is_refused)
{
	struct cm_msg msg = req_between(&peer_gid, &own_gid);

	type_of_request = IBV_GID_TYPE_ROCE_V1;
	fake.n_gids = 1;
	fake_add_gid("::ffff:10.0.0.1", 2, IBV_GID_TYPE_ROCE_V2);
	fake.gid[1].ndev_ifindex = FAKE_IFINDEX;
	read_roce_request(&msg, -EINVAL);
}

TEST(gid_of_a_lookup_over_roce_is_its_address)
{
	struct cm_msg msg = { .hdr.attr_id = CM_ATTR_SIDR_REQ, .sidr_req.pkey = 0xffff };
	struct path path = read_roce_request(&msg, 0);

	ck_assert_uint_eq(path.dgid.raw[15], 2);
	ck_assert_uint_eq(path.pkey, 0xffff);
}

TEST(return_route_by_another_interface_is_refused)
{
	struct cm_msg msg = req_between(&peer_gid, &own_gid);

	fake_net.leaves_by = FAKE_IFINDEX + 1;
	read_roce_request(&msg, -EINVAL);
}
