/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * lib/path/alternate.c, on a device with two InfiniBand ports, of which the second has four LIDs.
 */
#include <check.h>
#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/path/alternate.h"
#include "lib/path/infiniband.h"

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

#undef ibv_query_port
int ibv_query_port(struct ibv_context *context, uint8_t port_num, struct _compat_ibv_port_attr *ret)
{
	struct ibv_port_attr attr = { .lmc = 2, .pkey_tbl_len = 2 };

	(void)context;
	ck_assert_uint_eq(port_num, 2);
	memcpy(ret, &attr, sizeof(attr));
	return 0;
}

int ibv_query_pkey(struct ibv_context *context, uint8_t port_num, int index, __be16 *ret)
{
	(void)context;
	(void)port_num;
	*ret = htobe16(index ? PKEY : 0xffff);
	return 0;
}

int __wrap_gid_find_ib(struct ibv_context *const *devices, int n, const struct mad_gid *gid,
		       unsigned int ifindex, struct gid_entry *ret);

int __wrap_gid_find_ib(struct ibv_context *const *devices, int n, const struct mad_gid *gid,
		       unsigned int ifindex, struct gid_entry *ret)
{
	(void)devices;
	(void)ifindex;
	ck_assert_int_eq(n, 1);
	if (memcmp(gid, &own_gid, sizeof(own_gid)) != 0)
		return -ENODEV;
	*ret = (struct gid_entry){ .verbs = &verbs, .port_num = 2, .gid_index = 3 };
	return 0;
}

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

START_TEST(queue_pair_learns_the_alternate_path)
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
END_TEST

START_TEST(it_may_migrate_from_rts_on)
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
END_TEST

START_TEST(alternate_path_with_hops_has_a_global_route_header) /* loop test: _i: in the subnet */
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
END_TEST

START_TEST(request_without_one_changes_nothing)
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
END_TEST

START_TEST(alternate_path_to_another_host_is_refused)
{
	struct id_path path = { .pkey = PKEY };
	struct cm_req req = req_with_alternate();

	req.alternate.remote_gid = peer_gid;
	ck_assert_int_eq(alternate_take(&port, &req, &path), -EINVAL);
}
END_TEST

START_TEST(alternate_path_out_of_the_partition_is_refused)
{
	struct id_path path = { .pkey = 0x8006 };
	struct cm_req req = req_with_alternate();

	ck_assert_int_eq(alternate_take(&port, &req, &path), -ENOENT);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("alternate");
	TCase *tcase = tcase_create("request");
	SRunner *runner;
	int failed;

	tcase_add_test(tcase, queue_pair_learns_the_alternate_path);
	tcase_add_test(tcase, it_may_migrate_from_rts_on);
	tcase_add_loop_test(tcase, alternate_path_with_hops_has_a_global_route_header, 0, 2);
	tcase_add_test(tcase, request_without_one_changes_nothing);
	tcase_add_test(tcase, alternate_path_to_another_host_is_refused);
	tcase_add_test(tcase, alternate_path_out_of_the_partition_is_refused);
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
