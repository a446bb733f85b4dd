/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * lib/path/alternate.c, on a device with two InfiniBand ports, of which the second has four LIDs.
 */
#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/path/alternate.h"
#include "lib/path/infiniband.h"
#include "tests/unit/lib/fake_verbs.h"
#include "tests/unit/test.h"

#define PKEY 0x8005

static struct ibv_context verbs;
static struct device device = { .verbs = &verbs };
static struct port port = { .device = &device, .port_num = 1 };
static const struct mad_gid own_gid = {
	{0xfe, 0x80, [15] = 2}
};
static const struct mad_gid peer_gid = {
	{0xfe, 0x80, [15] = 9}
};

static bool gids_are_fake;

int __real_gid_find_ib(struct ibv_context *const *devices, int n, const struct mad_gid *gid,
		       unsigned int ifindex, struct gid_entry *ret);
int __wrap_gid_find_ib(struct ibv_context *const *devices, int n, const struct mad_gid *gid,
		       unsigned int ifindex, struct gid_entry *ret);

int __wrap_gid_find_ib(struct ibv_context *const *devices, int n, const struct mad_gid *gid,
		       unsigned int ifindex, struct gid_entry *ret)
{
	if (!gids_are_fake)
		return __real_gid_find_ib(devices, n, gid, ifindex, ret);
	ck_assert_int_eq(n, 1);
	if (memcmp(gid, &own_gid, sizeof(own_gid)) != 0)
		return -ENODEV;
	*ret = (struct gid_entry){ .verbs = &verbs, .port_num = 2, .gid_index = 3 };
	return 0;
}

static void set_up(void)
{
	gids_are_fake = true;
	fake.port[1] = (struct ibv_port_attr){ .lmc = 2, .pkey_tbl_len = 2 };
	fake.pkey[0] = 0xffff;
	fake.pkey[1] = PKEY;
}

FIXTURE(set_up, NULL);

static struct cm_req req_with_alternate(void)
{
	struct cm_req req = {
		.alternate = {.local_lid = 0x21,
			       .remote_lid = 0x47,
			       .local_gid = peer_gid,
			       .remote_gid = own_gid,
			       .packet_rate = 7,
			       .sl = 5,
			       .subnet_local = 1,
			       .local_ack_timeout = 18}
	};

	return req;
}

TEST(queue_pair_learns_the_alternate_path)
{
	struct id_path path = { .pkey = PKEY };
	struct cm_req req = req_with_alternate();
	struct ibv_qp_attr attr = { .alt_timeout = 0 };
	int mask = 0;

	ck_assert_int_eq(alternate_take(&port, &req, &path), 0);
	alternate_fill(&path, &attr, &mask);
	ck_assert_int_eq(mask, IBV_QP_ALT_PATH);
	ck_assert_uint_eq(attr.alt_ah_attr.dlid, 0x21);
	ck_assert_uint_eq(attr.alt_ah_attr.src_path_bits, 3);
	ck_assert_uint_eq(attr.alt_ah_attr.sl, 5);
	ck_assert_uint_eq(attr.alt_ah_attr.static_rate, 7);
	ck_assert_uint_eq(attr.alt_ah_attr.is_global, 0);
	ck_assert_uint_eq(attr.alt_port_num, 2);
	ck_assert_uint_eq(attr.alt_pkey_index, 1);
	ck_assert_uint_eq(attr.alt_timeout, 18);
}

TEST(it_may_migrate_from_rts_on)
{
	struct id_path path = { .pkey = PKEY };
	struct cm_req req = req_with_alternate();
	struct ibv_qp_attr attr = { .path_mig_state = IBV_MIG_MIGRATED };
	int mask = 0;

	ck_assert_int_eq(alternate_take(&port, &req, &path), 0);
	alternate_arm(&path, &attr, &mask);
	ck_assert_int_eq(mask, IBV_QP_PATH_MIG_STATE);
	ck_assert_int_eq(attr.path_mig_state, IBV_MIG_REARM);
}

TEST_LOOP(alternate_path_with_hops_has_a_global_route_header, 0,
	  2) /* loop test: _i: in the subnet */
{
	struct id_path path = { .pkey = PKEY };
	struct cm_req req = req_with_alternate();

	req.alternate.subnet_local = (uint8_t)_i;
	req.alternate.hop_limit = _i ? 1 : 64;
	ck_assert_int_eq(alternate_take(&port, &req, &path), 0);
	ck_assert_uint_eq(path.alternate.ah.is_global, 1);
	ck_assert_mem_eq(&path.alternate.ah.grh.dgid, &peer_gid, sizeof(peer_gid));
	ck_assert_uint_eq(path.alternate.ah.grh.sgid_index, 3);
	ck_assert_uint_eq(path.alternate.ah.grh.hop_limit, req.alternate.hop_limit);
}

TEST(request_without_one_changes_nothing)
{
	struct id_path path = { .pkey = PKEY };
	struct cm_req req = { .local_comm_id = 1 };
	struct ibv_qp_attr attr = { .alt_timeout = 0 };
	int mask = 0;

	ck_assert_int_eq(alternate_take(&port, &req, &path), 0);
	alternate_fill(&path, &attr, &mask);
	alternate_arm(&path, &attr, &mask);
	ck_assert_int_eq(mask, 0);
}

TEST(alternate_path_to_another_host_is_refused)
{
	struct id_path path = { .pkey = PKEY };
	struct cm_req req = req_with_alternate();

	req.alternate.remote_gid = peer_gid;
	ck_assert_int_eq(alternate_take(&port, &req, &path), -EINVAL);
}

TEST(alternate_path_out_of_the_partition_is_refused)
{
	struct id_path path = { .pkey = 0x8006 };
	struct cm_req req = req_with_alternate();

	ck_assert_int_eq(alternate_take(&port, &req, &path), -ENOENT);
}
