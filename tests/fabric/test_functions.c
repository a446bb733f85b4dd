/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * verbs.h calls functions through structs, some without checking for NULL. None of these calls may
 * crash: unsupported ones fail with EOPNOTSUPP. Runs on a host of a soft fabric:
 * tests/fabric/meson.build.
 */
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "tests/fabric/rig.h"
#include "tests/unit/test.h"

#define N(table) (int)(sizeof(table) / sizeof((table)[0]))
#define WORD	 8

/* --- structs of functions -------------------------------------------------------- */

typedef void (*function)(void);

/* Return: number of missing functions between two offsets; their offsets are in `missing`. */
static int find_missing(const void *from, size_t begin, size_t end, size_t *missing, int max)
{
	function at;
	int n = 0;

	for (; begin < end; begin += sizeof(at)) {
		memcpy(&at, (const char *)from + begin, sizeof(at));
		if (!at && n < max)
			missing[n++] = begin;
	}
	return n;
}

static struct ibv_qp_ex *qp_with(struct rig *rig, enum ibv_qp_type type, uint64_t ops)
{
	struct ibv_qp_init_attr_ex init = {
		.qp_type = type,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.send_ops_flags = ops,
		.pd = rig->pd,
		.send_cq = rig->a.cq,
		.recv_cq = rig->a.cq,
		.cap = { 4, 4, 1, 1, 0 },
	};
	struct ibv_qp *qp = ibv_create_qp_ex(rig->verbs, &init);

	ck_assert_ptr_nonnull(qp);
	return ibv_qp_to_qp_ex(qp);
}

static struct ibv_qp_ex *qp_of(struct rig *rig, enum ibv_qp_type type)
{
	return qp_with(rig, type, IBV_QP_EX_WITH_SEND);
}

TEST(queue_pair_has_all_functions_that_most_devices_have)
{
	size_t missing;
	struct rig rig;
	struct ibv_qp_ex *ex;

	rig_open(&rig, &(struct rig_config){ .type = IBV_QPT_RC });
	ex = qp_of(&rig, IBV_QPT_RC);
	ck_assert_int_eq(find_missing(ex, offsetof(struct ibv_qp_ex, wr_atomic_cmp_swp),
				      offsetof(struct ibv_qp_ex, wr_atomic_write), &missing, 1),
			 0);
	ck_assert_int_eq(ibv_destroy_qp(&ex->qp_base), 0);
	rig_close(&rig);
}

/* Among real devices only rxe has these; librpma checks for them. */
static const struct {
	uint64_t op;
	size_t begin;
} rare[] = {
	{ IBV_QP_EX_WITH_ATOMIC_WRITE, offsetof(struct ibv_qp_ex, wr_atomic_write) },
#ifdef FAB_HAS_FLUSH
	{ IBV_QP_EX_WITH_FLUSH, offsetof(struct ibv_qp_ex, wr_flush) },
#endif
};

TEST_LOOP(queue_pair_has_a_rare_function_only_on_request, 0, N(rare))
{
	struct ibv_qp_ex *ex;
	size_t missing;
	struct rig rig;

	rig_open(&rig, &(struct rig_config){ .type = IBV_QPT_RC });
	for (int asked = 0; asked < 2; asked++) {
		ex = qp_with(&rig, IBV_QPT_RC, asked ? rare[_i].op : IBV_QP_EX_WITH_SEND);
		ck_assert_int_eq(find_missing(ex, rare[_i].begin, rare[_i].begin + sizeof(function),
					      &missing, 1),
				 !asked);
		ck_assert_int_eq(ibv_destroy_qp(&ex->qp_base), 0);
	}
	rig_close(&rig);
}

TEST(completion_queue_has_all_functions)
{
	struct ibv_cq_init_attr_ex init = { .cqe = 4 };
	struct ibv_cq_ex *cq;
	size_t missing;
	struct rig rig;

	rig_open(&rig, &(struct rig_config){ .type = IBV_QPT_RC });
	cq = ibv_create_cq_ex(rig.verbs, &init);
	ck_assert_ptr_nonnull(cq);
	ck_assert_int_eq(
		find_missing(cq, offsetof(struct ibv_cq_ex, start_poll), sizeof(*cq), &missing, 1),
		0);
	ck_assert_int_eq(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)), 0);
	rig_close(&rig);
}

/*
 * Functions that verbs.h checks for, by their offsets in struct verbs_context; each is called
 * below.
 */
#define ABSENT(name) offsetof(struct verbs_context, name)
static const size_t absent[] = {
	ABSENT(alloc_null_mr),
	ABSENT(read_counters),
	ABSENT(attach_counters_point_flow),
	ABSENT(create_counters),
	ABSENT(destroy_counters),
	ABSENT(modify_flow_action_esp),
	ABSENT(destroy_flow_action),
	ABSENT(create_flow_action_esp),
	ABSENT(modify_qp_rate_limit),
	ABSENT(modify_cq),
	ABSENT(post_srq_ops),
	ABSENT(destroy_rwq_ind_table),
	ABSENT(create_rwq_ind_table),
	ABSENT(destroy_wq),
	ABSENT(modify_wq),
	ABSENT(create_wq),
	ABSENT(priv), /* libibverbs' own */
	ABSENT(ibv_destroy_flow),
	ABSENT(ABI_placeholder2),
	ABSENT(ibv_create_flow),
	ABSENT(ABI_placeholder1),
	ABSENT(open_qp),
};

TEST(context_has_all_functions_but_unsupported_ones)
{
	size_t missing[N(absent) + 1];
	struct rig rig;

	rig_open(&rig, &(struct rig_config){ .type = IBV_QPT_RC });
	ck_assert_int_eq(find_missing(verbs_get_ctx(rig.verbs),
				      offsetof(struct verbs_context, query_port),
				      offsetof(struct verbs_context, _ABI_placeholder3), missing,
				      N(missing)),
			 N(absent));
	for (int i = 0; i < N(absent); i++)
		ck_assert_uint_eq(missing[i], absent[i]);
	rig_close(&rig);
}

/* --- calls ---------------------------------------------------------------------------- */

#define REFUSED_PTR(call)                            \
	do {                                         \
		errno = 0;                           \
		ck_assert_ptr_null(call);            \
		ck_assert_int_eq(errno, EOPNOTSUPP); \
	} while (0)
#define REFUSED(call) ck_assert_int_eq(call, EOPNOTSUPP)

TEST(unsupported_objects_cannot_be_created)
{
	struct ibv_flow_attr flow = { .type = IBV_FLOW_ATTR_NORMAL, .size = sizeof(flow) };
	struct ibv_flow_action_esp_attr esp = { .comp_mask = 0 };
	struct ibv_rwq_ind_table_init_attr table = { .log_ind_tbl_size = 0 };
	struct ibv_counters_init_attr counters = { .comp_mask = 0 };
	struct ibv_qp_open_attr open = { .comp_mask = 0 };
	struct ibv_wq_init_attr wq = { .max_wr = 1 };
	struct rig rig;

	rig_open(&rig, &(struct rig_config){ .type = IBV_QPT_RC });
	REFUSED_PTR(ibv_create_flow(rig.a.qp, &flow));
	REFUSED_PTR(ibv_create_flow_action_esp(rig.verbs, &esp));
	REFUSED_PTR(ibv_create_rwq_ind_table(rig.verbs, &table));
	REFUSED_PTR(ibv_create_counters(rig.verbs, &counters));
	REFUSED_PTR(ibv_open_qp(rig.verbs, &open));
	REFUSED_PTR(ibv_create_wq(rig.verbs, &wq));
	REFUSED_PTR(ibv_alloc_null_mr(rig.pd));
	REFUSED_PTR(ibv_reg_dmabuf_mr(rig.pd, 0, WORD, 0, -1, IBV_ACCESS_LOCAL_WRITE));
	rig_close(&rig);
}

/* A program that creates the struct itself, or passes another device's. */
TEST(calls_on_unsupported_objects_are_refused)
{
	struct ibv_flow_action action;
	struct ibv_rwq_ind_table table;
	struct ibv_counters counters;
	struct ibv_flow flow;
	struct ibv_wq wq;
	struct rig rig;

	rig_open(&rig, &(struct rig_config){ .type = IBV_QPT_RC });
	action.context = table.context = counters.context = flow.context = wq.context = rig.verbs;
	REFUSED(ibv_destroy_flow(&flow));
	REFUSED(ibv_modify_flow_action_esp(&action, NULL));
	REFUSED(ibv_destroy_flow_action(&action));
	REFUSED(ibv_destroy_rwq_ind_table(&table));
	REFUSED(ibv_destroy_counters(&counters));
	REFUSED(ibv_attach_counters_point_flow(&counters, NULL, &flow));
	REFUSED(ibv_read_counters(&counters, NULL, 0, 0));
	REFUSED(ibv_modify_wq(&wq, NULL));
	REFUSED(ibv_destroy_wq(&wq));
	rig_close(&rig);
}

TEST(unsupported_calls_on_objects_of_the_device_are_refused)
{
	struct ibv_modify_cq_attr moderation = { .attr_mask = IBV_CQ_ATTR_MODERATE };
	struct ibv_ops_wr *bad, op = { .opcode = IBV_WR_TAG_ADD };
	struct ibv_qp_rate_limit_attr limit = { .rate_limit = 1 };
	struct rig rig;

	rig_open(&rig, &(struct rig_config){ .type = IBV_QPT_RC, .srq = true });
	REFUSED(ibv_modify_cq(rig.a.cq, &moderation));
	REFUSED(ibv_post_srq_ops(rig.srq, &op, &bad));
	REFUSED(ibv_modify_qp_rate_limit(rig.a.qp, &limit));
	rig_close(&rig);
}

static void read_far(struct ibv_qp_ex *ex)
{
	ibv_wr_rdma_read(ex, 1, 0);
}

static void add_far(struct ibv_qp_ex *ex)
{
	ibv_wr_atomic_fetch_add(ex, 1, 0, 1);
}

static void swap_far(struct ibv_qp_ex *ex)
{
	ibv_wr_atomic_cmp_swp(ex, 1, 0, 1, 2);
}

static void send_and_invalidate(struct ibv_qp_ex *ex)
{
	ibv_wr_send_inv(ex, 1);
}

static void send_segments(struct ibv_qp_ex *ex)
{
	char header[WORD] = { 0 };

	ibv_wr_send_tso(ex, header, sizeof(header), 1024);
}

static void write_far(struct ibv_qp_ex *ex)
{
	ibv_wr_rdma_write(ex, 1, 0);
}

static void write_and_notify(struct ibv_qp_ex *ex)
{
	ibv_wr_rdma_write_imm(ex, 1, 0, 0);
}

static void invalidate(struct ibv_qp_ex *ex)
{
	ibv_wr_local_inv(ex, 1);
}

static void bind_window(struct ibv_qp_ex *ex)
{
	ibv_wr_bind_mw(ex, NULL, 1, &(struct ibv_mw_bind_info){ .length = 0 });
}

static const struct {
	enum ibv_qp_type type;
	void (*call)(struct ibv_qp_ex *ex);
} operations[] = {
	{ IBV_QPT_RC, send_segments },
	{ IBV_QPT_UC, send_segments },
	{ IBV_QPT_UC, send_and_invalidate },
	{ IBV_QPT_UC, read_far },
	{ IBV_QPT_UC, add_far },
	{ IBV_QPT_UC, swap_far },
	{ IBV_QPT_UD, send_segments },
	{ IBV_QPT_UD, send_and_invalidate },
	{ IBV_QPT_UD, read_far },
	{ IBV_QPT_UD, add_far },
	{ IBV_QPT_UD, swap_far },
	{ IBV_QPT_UD, write_far },
	{ IBV_QPT_UD, write_and_notify },
	{ IBV_QPT_UD, invalidate },
	{ IBV_QPT_UD, bind_window },
};

/* The requested operations make no difference, as with mlx5. */
TEST_LOOP(unsupported_operation_fails_its_list, 0, N(operations))
{
	struct ibv_qp_ex *ex;
	struct rig rig;

	rig_open(&rig, &(struct rig_config){ .type = IBV_QPT_RC });
	ex = qp_of(&rig, operations[_i].type);
	ibv_wr_start(ex);
	operations[_i].call(ex);
	ibv_wr_set_sge(ex, rig.a.mr->lkey, (uintptr_t)rig.a.memory, WORD);
	REFUSED(ibv_wr_complete(ex));
	ck_assert_int_eq(ibv_destroy_qp(&ex->qp_base), 0);
	rig_close(&rig);
}

TEST(unrequested_completion_fields_read_as_zero)
{
	struct ibv_cq_init_attr_ex init = { .cqe = 4 };
	struct ibv_wc_tm_info info = { 1, 1 };
	struct ibv_cq_ex *cq;
	struct rig rig;

	rig_open(&rig, &(struct rig_config){ .type = IBV_QPT_RC });
	cq = ibv_create_cq_ex(rig.verbs, &init);
	ck_assert_ptr_nonnull(cq);
	ck_assert_uint_eq(ibv_wc_read_cvlan(cq), 0);
	ck_assert_uint_eq(ibv_wc_read_flow_tag(cq), 0);
	ibv_wc_read_tm_info(cq, &info);
	ck_assert_uint_eq(info.tag, 0);
	ck_assert_uint_eq(info.priv, 0);
	ck_assert_int_eq(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)), 0);
	rig_close(&rig);
}
