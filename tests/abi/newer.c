/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What our headers must contain whatever the distribution has: sizes that every program on x86-64
 * has compiled in, and values newer than the oldest release we compare with.
 */
#include <check.h>
#include <stddef.h>
#include <stdlib.h>

#include <infiniband/ib.h>
#include <rdma/rdma_cma.h>
#include <rdma/rdma_cma_abi.h>

#define ROW(expression, value)                                       \
	{                                                            \
#expression, (unsigned long long)(expression), value \
	}

static const struct row {
	const char *expression;
	unsigned long long is, must_be;
} rows[] = {
	ROW(sizeof(struct rdma_event_channel), 4),
	ROW(sizeof(struct rdma_cm_id), 416),
	ROW(sizeof(struct rdma_cm_event), 80),
	ROW(sizeof(struct rdma_addrinfo), 96),
	ROW(sizeof(struct rdma_conn_param), 24),
	ROW(sizeof(struct rdma_ud_param), 56),
	ROW(sizeof(struct rdma_route), 312),
	ROW(sizeof(struct rdma_cm_join_mc_attr_ex), 16),
	ROW(sizeof(struct sockaddr_ib), 48),
	ROW(offsetof(struct rdma_cm_id, qp_type), 408),
	ROW(offsetof(struct rdma_cm_event, param), 24),
	ROW(offsetof(struct rdma_cm_event, param.arg), 24),
	ROW(sizeof(((struct rdma_cm_event *)0)->param.arg), 8),
	ROW(RDMA_CM_EVENT_ADDRINFO_RESOLVED, 16),
	ROW(RDMA_CM_EVENT_ADDRINFO_ERROR, 17),
	ROW(RDMA_CM_EVENT_USER, 18),
	ROW(RDMA_CM_EVENT_INTERNAL, 19),
	ROW(RAI_SA, 0x10),
	ROW(RAI_DNS, 0x20),
	ROW(UCMA_CMD_RESOLVE_IB_SERVICE, 23),
	ROW(UCMA_CMD_WRITE_CM_EVENT, 24),
	ROW(UCMA_QUERY_IB_SERVICE, 3),
	ROW(UCMA_IB_SERVICE_FLAG_ID, 1),
	ROW(UCMA_IB_SERVICE_FLAG_NAME, 2),
	ROW(UCMA_IB_SERVICE_NAME_SIZE, 64),
	ROW(sizeof(struct ucma_abi_ib_service), 80),
	ROW(offsetof(struct ucma_abi_ib_service, flags), 72),
	ROW(sizeof(struct ucma_abi_resolve_ib_service), 96),
	ROW(offsetof(struct ucma_abi_resolve_ib_service, ibs), 16),
	ROW(sizeof(struct ucma_user_service_rec), 176),
	ROW(offsetof(struct ucma_user_service_rec, name), 48),
	ROW(offsetof(struct ucma_user_service_rec, data_64), 160),
	ROW(sizeof(struct ucma_abi_query_ib_service_resp), 8),
	ROW(offsetof(struct ucma_abi_query_ib_service_resp, recs), 8),
	ROW(sizeof(struct ucma_abi_event_resp), 336),
	ROW(offsetof(struct ucma_abi_event_resp, param.arg32), 20),
	ROW(sizeof(struct ucma_abi_write_cm_event), 336),
	ROW(offsetof(struct ucma_abi_write_cm_event, status), 20),
	ROW(offsetof(struct ucma_abi_write_cm_event, param.arg), 24),
};

START_TEST(header_has_the_corrections_of_upstream) /* loop test: _i is the row */
{
	ck_assert_msg(rows[_i].is == rows[_i].must_be, "%s is %llu, must be %llu",
		      rows[_i].expression, rows[_i].is, rows[_i].must_be);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("newer");
	TCase *tcase = tcase_create("headers");
	SRunner *runner = srunner_create(suite);
	int failed;

	suite_add_tcase(suite, tcase);
	tcase_add_loop_test(tcase, header_has_the_corrections_of_upstream, 0,
			    sizeof(rows) / sizeof(rows[0]));
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
