/* SPDX-License-Identifier: BSD-2-Clause */
/* The alternate path of a request (lib/path/path.h), on the device of path_rig.h. */
#include <errno.h>
#include <string.h>

#include "tests/unit/lib/path_rig.h"
#include "tests/unit/test.h"

FIXTURE(set_up, NULL);

static struct cm_req req_with_alternate(void)
{
	struct cm_req req = { .alternate = { .local_lid = 0x21,
					     .remote_lid = 0x47,
					     .local_gid = peer_gid,
					     .remote_gid = own_gid,
					     .packet_rate = 7,
					     .sl = 5,
					     .subnet_local = 1,
					     .local_ack_timeout = 18 } };

	return req;
}

static int read_alternate(const struct cm_req *req, uint16_t pkey, struct path *ret)
{
	struct path primary = path_of_type(IBV_GID_TYPE_IB);

	primary.pkey = pkey;
	path_prepare(&port);
	return path_of_alternate(&primary, req, ret);
}

TEST(alternate_path_is_read_from_the_request)
{
	struct cm_req req = req_with_alternate();
	struct ibv_ah_attr ah;
	struct path path;

	ck_assert_int_eq(read_alternate(&req, PKEY, &path), 0);
	path_to_ah(&path, &ah);
	ck_assert_uint_eq(ah.dlid, 0x21);
	ck_assert_uint_eq(ah.src_path_bits, 3);
	ck_assert_uint_eq(ah.sl, 5);
	ck_assert_uint_eq(ah.static_rate, 7);
	ck_assert_uint_eq(ah.is_global, 0);
	ck_assert_uint_eq(ah.port_num, 2);
	ck_assert_uint_eq(path.pkey_index, 1);
	ck_assert_uint_eq(path.packet_life_time, 17);
}

TEST(record_of_an_alternate_path_has_both_ends)
{
	struct cm_req req = req_with_alternate();
	struct ibv_sa_path_rec record;
	struct path path;

	ck_assert_int_eq(read_alternate(&req, PKEY, &path), 0);
	path_to_record(&path, &record);
	ck_assert_mem_eq(&record.sgid, &own_gid, sizeof(own_gid));
	ck_assert_mem_eq(&record.dgid, &peer_gid, sizeof(peer_gid));
}

TEST_LOOP(alternate_path_with_hops_has_a_global_route_header, 0, 2) /* 1: within the subnet */
{
	struct cm_req req = req_with_alternate();
	struct ibv_ah_attr ah;
	struct path path;

	req.alternate.subnet_local = (uint8_t)_i;
	req.alternate.hop_limit = _i ? 1 : 64;
	ck_assert_int_eq(read_alternate(&req, PKEY, &path), 0);
	path_to_ah(&path, &ah);
	ck_assert_uint_eq(ah.is_global, 1);
	ck_assert_mem_eq(&ah.grh.dgid, &peer_gid, sizeof(peer_gid));
	ck_assert_uint_eq(ah.grh.sgid_index, 3);
	ck_assert_uint_eq(ah.grh.hop_limit, req.alternate.hop_limit);
}

TEST(request_without_an_alternate_path_has_none)
{
	struct cm_req req = { .local_comm_id = 1 };
	struct path path;

	ck_assert_int_eq(read_alternate(&req, PKEY, &path), 0);
	ck_assert_ptr_null(path.gid.verbs);
}

TEST(roce_has_no_alternate_paths)
{
	struct path primary = path_of_type(IBV_GID_TYPE_ROCE_V2);
	struct cm_req req = req_with_alternate();
	struct path path;

	ck_assert_int_eq(path_of_alternate(&primary, &req, &path), -EINVAL);
}

TEST(alternate_path_to_another_host_is_refused)
{
	struct cm_req req = req_with_alternate();
	struct path path;

	req.alternate.remote_gid = peer_gid;
	ck_assert_int_eq(read_alternate(&req, PKEY, &path), -EINVAL);
}

TEST(alternate_path_out_of_the_partition_is_refused)
{
	struct cm_req req = req_with_alternate();
	struct path path;

	ck_assert_int_eq(read_alternate(&req, 0x8007, &path), -ENOENT);
}
