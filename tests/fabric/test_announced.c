/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The device announces a feature exactly if it works: each row tries one. Runs on a host of a soft
 * fabric: tests/fabric/meson.build.
 */
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "tests/fabric/rig.h"
#include "tests/unit/test.h"

#define N(table)		(int)(sizeof(table) / sizeof((table)[0]))
#define CAP_ATOMIC_WRITE	(UINT64_C(1) << 40)
#define CAP_FLUSH_GLOBAL	(UINT64_C(1) << 38)
#define CAP_FLUSH_PERSISTENT	(UINT64_C(1) << 39)
#define ACCESS_FLUSH_PERSISTENT (1 << 9)
#define EX_WITH_FLUSH		(UINT64_C(1) << 11)
#define EX_ATOMIC_WRITE		(UINT64_C(1) << 12)
#define WORD			8

/* The objects that a row uses. */
struct trial {
	struct rig rig;
	struct ibv_device_attr_ex attr;
};

/* --- features of flags ------------------------------------------------------ */

static bool checks_current_state(struct trial *trial)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RTS, .cur_qp_state = IBV_QPS_SQD };
	struct ibv_qp *qp = trial->rig.a.qp;
	int wrong = ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_CUR_STATE);

	attr.cur_qp_state = IBV_QPS_RTS;
	return wrong == EINVAL && !ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_CUR_STATE);
}

static bool has_image_guid(struct trial *trial)
{
	return trial->attr.orig_attr.sys_image_guid != 0;
}

static bool sends_rnr_naks(struct trial *trial)
{
	struct ibv_sge sge;
	struct ibv_send_wr wr = rig_wr(&trial->rig, IBV_WR_SEND, &sge, 1);

	rig_post(&trial->rig.a, &wr);
	return rig_wait(trial->rig.a.cq, IBV_WC_RNR_RETRY_EXC_ERR).status ==
	       IBV_WC_RNR_RETRY_EXC_ERR;
}

static bool resizes_shared_queues(struct trial *trial)
{
	struct ibv_srq_init_attr init = { .attr = { .max_wr = 4, .max_sge = 1 } };
	struct ibv_srq *srq = ibv_create_srq(trial->rig.pd, &init);
	struct ibv_srq_attr attr = { .max_wr = 100 };
	int err = ibv_modify_srq(srq, &attr, IBV_SRQ_MAX_WR);

	ck_assert_int_eq(ibv_destroy_srq(srq), 0);
	return !err;
}

static bool opens_xrc_domains(struct trial *trial)
{
	struct ibv_xrcd_init_attr init = { .comp_mask = IBV_XRCD_INIT_ATTR_FD |
							IBV_XRCD_INIT_ATTR_OFLAGS,
					   .fd = -1,
					   .oflags = O_CREAT };
	struct ibv_xrcd *xrcd = ibv_open_xrcd(trial->rig.verbs, &init);

	return xrcd && !ibv_close_xrcd(xrcd);
}

static bool binds_window(struct trial *trial, enum ibv_mw_type type)
{
	struct rig *rig = &trial->rig;
	struct ibv_mw *mw = ibv_alloc_mw(rig->pd, type);
	struct ibv_mw_bind_info info = { rig->b.mr, (uintptr_t)rig->b.memory, WORD,
					 IBV_ACCESS_REMOTE_READ };
	struct ibv_mw_bind bind = { .send_flags = IBV_SEND_SIGNALED, .bind_info = info };
	struct ibv_send_wr *bad, wr = { .opcode = IBV_WR_BIND_MW, .send_flags = IBV_SEND_SIGNALED };
	int err;

	if (!mw)
		return false;
	wr.bind_mw.mw = mw;
	wr.bind_mw.rkey = ibv_inc_rkey(mw->rkey);
	wr.bind_mw.bind_info = info;
	err = type == IBV_MW_TYPE_1 ? ibv_bind_mw(rig->b.qp, mw, &bind)
				    : ibv_post_send(rig->b.qp, &wr, &bad);
	if (!err)
		rig_wait(rig->b.cq, IBV_WC_SUCCESS);
	return !ibv_dealloc_mw(mw) && !err;
}

static bool binds_windows_of_type_1(struct trial *trial)
{
	return binds_window(trial, IBV_MW_TYPE_1);
}

static bool binds_windows_of_type_2(struct trial *trial)
{
	return binds_window(trial, IBV_MW_TYPE_2);
}

static bool invalidates(struct trial *trial)
{
	struct rig *rig = &trial->rig;
	struct ibv_mw *mw = ibv_alloc_mw(rig->pd, IBV_MW_TYPE_2);
	struct ibv_send_wr bind = { .opcode = IBV_WR_BIND_MW, .send_flags = IBV_SEND_SIGNALED };
	struct ibv_send_wr wr = { .opcode = IBV_WR_LOCAL_INV, .send_flags = IBV_SEND_SIGNALED };
	struct ibv_send_wr *bad;

	bind.bind_mw.mw = mw;
	bind.bind_mw.rkey = wr.invalidate_rkey = ibv_inc_rkey(mw->rkey);
	bind.bind_mw.bind_info = (struct ibv_mw_bind_info){ rig->b.mr, (uintptr_t)rig->b.memory,
							    WORD, IBV_ACCESS_REMOTE_READ };
	if (ibv_post_send(rig->b.qp, &bind, &bad) || ibv_post_send(rig->b.qp, &wr, &bad))
		return false;
	rig_wait(rig->b.cq, IBV_WC_SUCCESS);
	rig_wait(rig->b.cq, IBV_WC_SUCCESS);
	return !ibv_dealloc_mw(mw);
}

static struct ibv_qp *qp_with(struct trial *trial, enum ibv_qp_type type, uint64_t ops,
			      uint32_t create_flags)
{
	struct ibv_qp_init_attr_ex init = {
		.qp_type = type,
		.comp_mask = IBV_QP_INIT_ATTR_PD | (ops ? IBV_QP_INIT_ATTR_SEND_OPS_FLAGS : 0u) |
			     (create_flags ? IBV_QP_INIT_ATTR_CREATE_FLAGS : 0u),
		.create_flags = create_flags,
		.send_ops_flags = ops,
		.pd = trial->rig.pd,
		.send_cq = trial->rig.a.cq,
		.recv_cq = trial->rig.a.cq,
		.cap = { 1, 1, 1, 1, 0 },
	};

	return ibv_create_qp_ex(trial->rig.verbs, &init);
}

static bool creates(struct trial *trial, enum ibv_qp_type type, uint64_t ops, uint32_t create_flags)
{
	struct ibv_qp *qp = qp_with(trial, type, ops, create_flags);

	return qp && !ibv_destroy_qp(qp);
}

static bool writes_atomically(struct trial *trial)
{
	return creates(trial, IBV_QPT_RC, EX_ATOMIC_WRITE, 0);
}

static bool flushes(struct trial *trial)
{
	return creates(trial, IBV_QPT_RC, EX_WITH_FLUSH, 0);
}

static bool makes_persistent(struct trial *trial)
{
	struct ibv_mr *mr =
		ibv_reg_mr(trial->rig.pd, trial->rig.a.memory, WORD, ACCESS_FLUSH_PERSISTENT);

	return mr && !ibv_dereg_mr(mr);
}

static bool has_raw_packets(struct trial *trial)
{
	return creates(trial, IBV_QPT_RAW_PACKET, 0, 0);
}

static bool pads_writes(struct trial *trial)
{
	return creates(trial, IBV_QPT_RC, 0, IBV_QP_CREATE_PCI_WRITE_END_PADDING);
}

static bool steers_flows(struct trial *trial)
{
	struct ibv_flow_attr attr = { .type = IBV_FLOW_ATTR_NORMAL, .size = sizeof(attr) };
	struct ibv_flow *flow = ibv_create_flow(trial->rig.a.qp, &attr);

	return flow && !ibv_destroy_flow(flow);
}

static bool checks_ip(struct trial *trial)
{
	struct ibv_sge sge;
	struct ibv_send_wr *bad, wr = rig_wr(&trial->rig, IBV_WR_SEND, &sge, 1);

	wr.send_flags |= IBV_SEND_IP_CSUM;
	return !ibv_post_send(trial->rig.a.qp, &wr, &bad);
}

static bool resizes_queue_pairs(struct trial *trial)
{
	struct ibv_qp_attr attr = { .cap = { 200, 200, 1, 1, 0 } };

	return !ibv_modify_qp(trial->rig.a.qp, &attr, IBV_QP_CAP);
}

static bool has_raw_multicast(struct trial *trial)
{
	return has_raw_packets(trial);
}

static const struct {
	uint64_t flag;
	bool (*works)(struct trial *trial);
} flags[] = {
	{ IBV_DEVICE_RESIZE_MAX_WR, resizes_queue_pairs },
	{ IBV_DEVICE_RAW_MULTI, has_raw_multicast },
	{ IBV_DEVICE_CURR_QP_STATE_MOD, checks_current_state },
	{ IBV_DEVICE_SYS_IMAGE_GUID, has_image_guid },
	{ IBV_DEVICE_RC_RNR_NAK_GEN, sends_rnr_naks },
	{ IBV_DEVICE_SRQ_RESIZE, resizes_shared_queues },
	{ IBV_DEVICE_MEM_WINDOW, binds_windows_of_type_1 },
	{ IBV_DEVICE_UD_IP_CSUM, checks_ip },
	{ IBV_DEVICE_XRC, opens_xrc_domains },
	{ IBV_DEVICE_MEM_MGT_EXTENSIONS, invalidates },
	{ IBV_DEVICE_MEM_WINDOW_TYPE_2B, binds_windows_of_type_2 },
	{ IBV_DEVICE_RC_IP_CSUM, checks_ip },
	{ IBV_DEVICE_RAW_IP_CSUM, has_raw_packets },
	{ IBV_DEVICE_MANAGED_FLOW_STEERING, steers_flows },
	{ IBV_DEVICE_RAW_SCATTER_FCS, has_raw_packets },
	{ IBV_DEVICE_PCI_WRITE_END_PADDING, pads_writes },
	{ CAP_FLUSH_GLOBAL, flushes },
	{ CAP_FLUSH_PERSISTENT, makes_persistent },
	{ CAP_ATOMIC_WRITE, writes_atomically },
};

/*
 * Omitted: port events (ibv_asyncwatch in tests/programs), alternate paths, which are stored
 * without effect and not announced, and flags that only distinguish the two kinds of a feature.
 */
#define ELSEWHERE (IBV_DEVICE_PORT_ACTIVE_EVENT)

static void open_trial(struct trial *trial)
{
	rig_open(&trial->rig,
		 &(struct rig_config){ .rnr_retry = 1,
				       .access = RIG_ALL_ACCESS | IBV_ACCESS_MW_BIND });
	ck_assert_int_eq(ibv_query_device_ex(trial->rig.verbs, NULL, &trial->attr), 0);
}

TEST_LOOP(flag_is_set_if_and_only_if_its_feature_works, 0, N(flags))
{
	struct trial trial;

	open_trial(&trial);
	ck_assert_int_eq(!(trial.attr.device_cap_flags_ex & flags[_i].flag),
			 !flags[_i].works(&trial));
	rig_close(&trial.rig);
}

TEST(each_flag_that_is_set_has_a_test)
{
	uint64_t known = ELSEWHERE;
	struct trial trial;

	open_trial(&trial);
	for (int i = 0; i < N(flags); i++)
		known |= flags[i].flag;
	ck_assert_uint_eq(trial.attr.device_cap_flags_ex & ~known, 0);
	ck_assert_uint_eq(trial.attr.orig_attr.device_cap_flags & ~known, 0);
	rig_close(&trial.rig);
}

/* --- features of other attributes -------------------------------------------- */

static bool registers(struct trial *trial, void *addr, size_t bytes)
{
	struct ibv_mr *mr = ibv_reg_mr(trial->rig.pd, addr, bytes,
				       IBV_ACCESS_ON_DEMAND | IBV_ACCESS_LOCAL_WRITE);

	return mr && !ibv_dereg_mr(mr);
}

TEST(memory_on_demand_announces_its_general_features)
{
	struct trial trial;

	open_trial(&trial);
	ck_assert_int_eq(!(trial.attr.odp_caps.general_caps & IBV_ODP_SUPPORT),
			 !registers(&trial, &trial, sizeof(trial)));
	ck_assert_int_eq(!(trial.attr.odp_caps.general_caps & IBV_ODP_SUPPORT_IMPLICIT),
			 !registers(&trial, NULL, SIZE_MAX));
	rig_close(&trial.rig);
}

/* Operations that memory on demand supports, by type of queue pair. */
static const struct {
	enum ibv_qp_type type;
	bool srq;
	uint32_t bits;
	enum ibv_wr_opcode opcode;
} on_demand[] = {
	{ IBV_QPT_RC, false, IBV_ODP_SUPPORT_SEND | IBV_ODP_SUPPORT_RECV, IBV_WR_SEND },
	{ IBV_QPT_RC, true, IBV_ODP_SUPPORT_SRQ_RECV, IBV_WR_SEND },
	{ IBV_QPT_RC, false, IBV_ODP_SUPPORT_WRITE, IBV_WR_RDMA_WRITE },
	{ IBV_QPT_RC, false, IBV_ODP_SUPPORT_READ, IBV_WR_RDMA_READ },
	{ IBV_QPT_RC, false, IBV_ODP_SUPPORT_ATOMIC, IBV_WR_ATOMIC_FETCH_AND_ADD },
	{ IBV_QPT_UC, false, IBV_ODP_SUPPORT_SEND | IBV_ODP_SUPPORT_RECV, IBV_WR_SEND },
	{ IBV_QPT_UC, true, IBV_ODP_SUPPORT_SRQ_RECV, IBV_WR_SEND },
	{ IBV_QPT_UC, false, IBV_ODP_SUPPORT_WRITE, IBV_WR_RDMA_WRITE },
	{ IBV_QPT_UD, false, IBV_ODP_SUPPORT_SEND | IBV_ODP_SUPPORT_RECV, IBV_WR_SEND },
	{ IBV_QPT_UD, true, IBV_ODP_SUPPORT_SRQ_RECV, IBV_WR_SEND },
};

static uint32_t on_demand_bits(const struct trial *trial, enum ibv_qp_type type)
{
	const struct ibv_odp_caps *caps = &trial->attr.odp_caps;

	if (type == IBV_QPT_RC)
		return caps->per_transport_caps.rc_odp_caps;
	return type == IBV_QPT_UC ? caps->per_transport_caps.uc_odp_caps
				  : caps->per_transport_caps.ud_odp_caps;
}

static void register_on_demand(struct rig *rig, struct end *end)
{
	ck_assert_int_eq(ibv_dereg_mr(end->mr), 0);
	end->mr =
		ibv_reg_mr(rig->pd, end->memory, RIG_BYTES, IBV_ACCESS_ON_DEMAND | RIG_ALL_ACCESS);
	ck_assert_ptr_nonnull(end->mr);
}

TEST_LOOP(memory_on_demand_serves_each_announced_operation, 0, N(on_demand))
{
	enum ibv_wr_opcode opcode = on_demand[_i].opcode;
	struct trial trial;
	struct rig *rig = &trial.rig;
	struct ibv_send_wr wr;
	struct ibv_sge sge;

	rig_open(rig, &(struct rig_config){ .type = on_demand[_i].type, .srq = on_demand[_i].srq });
	ck_assert_int_eq(ibv_query_device_ex(rig->verbs, NULL, &trial.attr), 0);
	ck_assert_uint_eq(~on_demand_bits(&trial, on_demand[_i].type) & on_demand[_i].bits, 0);
	register_on_demand(rig, &rig->a);
	register_on_demand(rig, &rig->b);
	if (opcode == IBV_WR_SEND)
		rig_receive(&rig->b, 1, 100);
	wr = rig_wr(rig, opcode, &sge, WORD);
	if (on_demand[_i].type == IBV_QPT_UD) {
		wr.wr.ud.ah = rig_ah(rig);
		wr.wr.ud.remote_qpn = rig->b.qp->qp_num;
		wr.wr.ud.remote_qkey = RIG_QKEY;
	}
	rig_post(&rig->a, &wr);
	rig_wait(rig->a.cq, IBV_WC_SUCCESS);
	if (opcode == IBV_WR_SEND)
		rig_wait(rig->b.cq, IBV_WC_SUCCESS);
	if (on_demand[_i].type == IBV_QPT_UD)
		ck_assert_int_eq(ibv_destroy_ah(wr.wr.ud.ah), 0);
	rig_close(rig);
}

TEST(memory_on_demand_serves_no_other_operation)
{
	struct trial trial;

	open_trial(&trial);
	for (int type = IBV_QPT_RC; type <= IBV_QPT_UD; type++) {
		uint32_t known = 0;

		for (int i = 0; i < N(on_demand); i++)
			known |= (int)on_demand[i].type == type ? on_demand[i].bits : 0;
		ck_assert_uint_eq(on_demand_bits(&trial, (enum ibv_qp_type)type) & ~known, 0);
	}
	rig_close(&trial.rig);
}

/* --- sizes ---------------------------------------------------------------------- */

static bool creates_with(struct trial *trial, struct ibv_qp_cap cap)
{
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_RC,
					 .send_cq = trial->rig.a.cq,
					 .recv_cq = trial->rig.a.cq,
					 .cap = cap };
	struct ibv_qp *qp = ibv_create_qp(trial->rig.pd, &init);

	return qp && !ibv_destroy_qp(qp);
}

TEST(queue_pair_can_have_the_announced_size)
{
	uint32_t wr, sge;
	struct trial trial;

	open_trial(&trial);
	wr = (uint32_t)trial.attr.orig_attr.max_qp_wr;
	sge = (uint32_t)trial.attr.orig_attr.max_sge;
	ck_assert(creates_with(&trial, (struct ibv_qp_cap){ wr, wr, sge, sge, 0 }));
	ck_assert(!creates_with(&trial, (struct ibv_qp_cap){ wr + 1, 1, 1, 1, 0 }));
	ck_assert(!creates_with(&trial, (struct ibv_qp_cap){ 1, wr + 1, 1, 1, 0 }));
	ck_assert(!creates_with(&trial, (struct ibv_qp_cap){ 1, 1, sge + 1, 1, 0 }));
	ck_assert(!creates_with(&trial, (struct ibv_qp_cap){ 1, 1, 1, sge + 1, 0 }));
	rig_close(&trial.rig);
}

TEST(completion_queue_can_have_the_announced_size)
{
	struct trial trial;
	struct ibv_cq *cq;

	open_trial(&trial);
	cq = ibv_create_cq(trial.rig.verbs, trial.attr.orig_attr.max_cqe, NULL, NULL, 0);
	ck_assert_ptr_nonnull(cq);
	ck_assert_int_eq(ibv_destroy_cq(cq), 0);
	ck_assert_ptr_null(
		ibv_create_cq(trial.rig.verbs, trial.attr.orig_attr.max_cqe + 1, NULL, NULL, 0));
	rig_close(&trial.rig);
}

TEST(shared_receive_queue_can_have_the_announced_size)
{
	struct ibv_srq_init_attr init = { .srq_context = NULL };
	struct ibv_device_attr *attr;
	struct trial trial;
	struct ibv_srq *srq;

	open_trial(&trial);
	attr = &trial.attr.orig_attr;
	init.attr = (struct ibv_srq_attr){ .max_wr = (uint32_t)attr->max_srq_wr,
					   .max_sge = (uint32_t)attr->max_srq_sge };
	srq = ibv_create_srq(trial.rig.pd, &init);
	ck_assert_ptr_nonnull(srq);
	ck_assert_int_eq(ibv_destroy_srq(srq), 0);
	init.attr.max_wr = (uint32_t)attr->max_srq_wr + 1;
	ck_assert_ptr_null(ibv_create_srq(trial.rig.pd, &init));
	init.attr.max_wr = 1;
	init.attr.max_sge = (uint32_t)attr->max_srq_sge + 1;
	ck_assert_ptr_null(ibv_create_srq(trial.rig.pd, &init));
	rig_close(&trial.rig);
}

TEST(device_memory_has_the_announced_size)
{
	struct ibv_alloc_dm_attr want;
	struct trial trial;
	struct ibv_dm *dm;

	open_trial(&trial);
	want = (struct ibv_alloc_dm_attr){ .length = trial.attr.max_dm_size };
	dm = ibv_alloc_dm(trial.rig.verbs, &want);
	ck_assert_ptr_nonnull(dm);
	ck_assert_int_eq(ibv_free_dm(dm), 0);
	want.length++;
	ck_assert_ptr_null(ibv_alloc_dm(trial.rig.verbs, &want));
	rig_close(&trial.rig);
}

TEST(completions_have_timestamps_if_their_mask_is_not_0)
{
	struct ibv_cq_init_attr_ex init = { .cqe = 4,
					    .wc_flags = IBV_WC_EX_WITH_COMPLETION_TIMESTAMP };
	struct trial trial;
	struct ibv_cq_ex *cq;

	open_trial(&trial);
	cq = ibv_create_cq_ex(trial.rig.verbs, &init);
	ck_assert_int_eq(!trial.attr.completion_timestamp_mask, !cq);
	ck_assert_uint_ne(trial.attr.hca_core_clock, 0);
	ck_assert_int_eq(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)), 0);
	rig_close(&trial.rig);
}

/*
 * Each is unsupported (test_refused.c): tags, receive hashing, segmentation, pacing, raw packets.
 */
TEST(unsupported_feature_has_no_capability)
{
	struct trial trial;

	open_trial(&trial);
	ck_assert_uint_eq(trial.attr.tm_caps.max_num_tags, 0);
	ck_assert_uint_eq(trial.attr.rss_caps.supported_qpts, 0);
	ck_assert_uint_eq(trial.attr.max_wq_type_rq, 0);
	ck_assert_uint_eq(trial.attr.tso_caps.max_tso, 0);
	ck_assert_uint_eq(trial.attr.packet_pacing_caps.supported_qpts, 0);
	ck_assert_uint_eq(trial.attr.raw_packet_caps, 0);
	ck_assert_uint_eq(trial.attr.pci_atomic_caps.fetch_add, 0);
	ck_assert_uint_eq(trial.attr.pci_atomic_caps.swap, 0);
	ck_assert_uint_eq(trial.attr.pci_atomic_caps.compare_swap, 0);
	rig_close(&trial.rig);
}

/* --- functions of extended queue pairs ------------------------------------------ */

#define FUNCTION(name) offsetof(struct ibv_qp_ex, wr_##name)

static const struct {
	uint64_t op;
	size_t function;
} functions[] = {
	{ IBV_QP_EX_WITH_RDMA_WRITE, FUNCTION(rdma_write) },
	{ IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM, FUNCTION(rdma_write_imm) },
	{ IBV_QP_EX_WITH_SEND, FUNCTION(send) },
	{ IBV_QP_EX_WITH_SEND_WITH_IMM, FUNCTION(send_imm) },
	{ IBV_QP_EX_WITH_RDMA_READ, FUNCTION(rdma_read) },
	{ IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP, FUNCTION(atomic_cmp_swp) },
	{ IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD, FUNCTION(atomic_fetch_add) },
	{ IBV_QP_EX_WITH_LOCAL_INV, FUNCTION(local_inv) },
	{ IBV_QP_EX_WITH_BIND_MW, FUNCTION(bind_mw) },
	{ IBV_QP_EX_WITH_SEND_WITH_INV, FUNCTION(send_inv) },
	{ IBV_QP_EX_WITH_TSO, FUNCTION(send_tso) },
	{ EX_ATOMIC_WRITE, FUNCTION(atomic_write) },
#ifdef FAB_HAS_FLUSH
	{ EX_WITH_FLUSH, FUNCTION(flush) },
#endif
};

static const enum ibv_qp_type types[] = { IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD, IBV_QPT_XRC_SEND };

static bool has_function(const struct ibv_qp_ex *ex, size_t function)
{
	void (*at)(void);

	memcpy(&at, (const char *)ex + function, sizeof(at));
	return at;
}

/* A program calls it without a check: a NULL function would crash it. */
TEST_LOOP(queue_pair_has_the_function_of_each_announced_operation, 0, N(functions))
{
	struct trial trial;
	struct ibv_qp *qp;

	open_trial(&trial);
	for (int i = 0; i < N(types); i++) {
		qp = qp_with(&trial, types[i], functions[_i].op, 0);
		if (!qp) {
			ck_assert_int_eq(errno, EOPNOTSUPP);
			continue;
		}
		ck_assert(has_function(ibv_qp_to_qp_ex(qp), functions[_i].function));
		ck_assert_int_eq(ibv_destroy_qp(qp), 0);
	}
	rig_close(&trial.rig);
}
