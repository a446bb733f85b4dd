/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Requests that the soft fabric's device does not support fail with the errno of a provider without
 * support. Runs on a host of a soft fabric: tests/fabric/meson.build.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

#include "tests/fabric/rig.h"
#include "tests/unit/test.h"

#define N(table) (int)(sizeof(table) / sizeof((table)[0]))

static const struct rig_config rc = { .type = IBV_QPT_RC };

/* --- queue pairs --------------------------------------------------------- */

#define OPS	 IBV_QP_INIT_ATTR_SEND_OPS_FLAGS
#define EX_FLUSH (1 << 11)
#ifdef FAB_HAS_FLUSH
#define ALL_OPS 0x1bff
#else
#define ALL_OPS 0x13ff
#endif

static const struct {
	enum ibv_qp_type type;
	uint32_t mask, create_flags;
	uint64_t ops;
	int error;
} queue_pairs[] = {
	{ IBV_QPT_RC, OPS, 0, ALL_OPS, 0 },
	{ IBV_QPT_UC, OPS, 0, 0x18f, 0 },
	{ IBV_QPT_UD, OPS, 0, 0x0c, 0 },
	{ IBV_QPT_UC, OPS, 0, IBV_QP_EX_WITH_SEND_WITH_INV, EOPNOTSUPP },
	{ IBV_QPT_UD, OPS, 0, IBV_QP_EX_WITH_TSO, EOPNOTSUPP },
#ifndef FAB_HAS_FLUSH
	{ IBV_QPT_RC, OPS, 0, EX_FLUSH, EOPNOTSUPP },
#endif
	{ IBV_QPT_UC, OPS, 0, EX_FLUSH, EOPNOTSUPP },
	{ IBV_QPT_UC, OPS, 0, IBV_QP_EX_WITH_ATOMIC_WRITE, EOPNOTSUPP },
	{ IBV_QPT_RC, OPS, 0, UINT64_C(1) << 63, EOPNOTSUPP },
	{ IBV_QPT_UC, OPS, 0, IBV_QP_EX_WITH_RDMA_READ, EOPNOTSUPP },
	{ IBV_QPT_UD, OPS, 0, IBV_QP_EX_WITH_RDMA_WRITE, EOPNOTSUPP },
	{ IBV_QPT_RC, IBV_QP_INIT_ATTR_CREATE_FLAGS, 0, 0, 0 },
	{ IBV_QPT_RC, IBV_QP_INIT_ATTR_CREATE_FLAGS, 2, 0, EOPNOTSUPP },
	{ IBV_QPT_RC, IBV_QP_INIT_ATTR_XRCD, 0, 0, EOPNOTSUPP },
	{ IBV_QPT_RC, IBV_QP_INIT_ATTR_RX_HASH, 0, 0, EOPNOTSUPP },
	{ IBV_QPT_RC, 1u << 31, 0, 0, EOPNOTSUPP },
	{ IBV_QPT_RAW_PACKET, 0, 0, 0, EOPNOTSUPP },
	{ IBV_QPT_XRC_RECV, 0, 0, 0, EINVAL }, /* of no domain */
	{ IBV_QPT_DRIVER, 0, 0, 0, EOPNOTSUPP },
	{ 77, 0, 0, 0, EINVAL },
};

TEST_LOOP(unsupported_queue_pair_is_refused, 0, N(queue_pairs))
{
	struct ibv_qp_init_attr_ex init = {
		.qp_type = queue_pairs[_i].type,
		.comp_mask = IBV_QP_INIT_ATTR_PD | queue_pairs[_i].mask,
		.create_flags = queue_pairs[_i].create_flags,
		.send_ops_flags = queue_pairs[_i].ops,
		.cap = { 1, 1, 1, 1, 0 },
	};
	struct ibv_qp *qp;
	struct rig rig;

	rig_open(&rig, &rc);
	init.pd = rig.pd;
	init.send_cq = rig.a.cq;
	init.recv_cq = rig.a.cq;
	errno = 0;
	qp = ibv_create_qp_ex(rig.verbs, &init);
	ck_assert_int_eq(errno, queue_pairs[_i].error);
	ck_assert_int_eq(!qp, errno != 0);
	if (qp)
		ck_assert_int_eq(ibv_destroy_qp(qp), 0);
	rig_close(&rig);
}

TEST(rate_of_a_queue_pair_cannot_be_limited)
{
	struct ibv_qp_rate_limit_attr limit = { .rate_limit = 1 };
	struct ibv_qp_attr attr = { .rate_limit = 1 };
	struct rig rig;

	rig_open(&rig, &rc);
	ck_assert_int_eq(ibv_modify_qp(rig.a.qp, &attr, IBV_QP_RATE_LIMIT), EOPNOTSUPP);
	ck_assert_int_eq(ibv_modify_qp_rate_limit(rig.a.qp, &limit), EOPNOTSUPP);
	rig_close(&rig);
}

static const struct {
	enum ibv_wr_opcode opcode;
	unsigned int flags;
} requests[] = {
	{ IBV_WR_BIND_MW, 0 }, /* of no window */
	{ IBV_WR_TSO, 0 },	  { 100, 0 }, { IBV_WR_SEND, IBV_SEND_IP_CSUM },
	{ IBV_WR_SEND, 1u << 5 },
};

TEST_LOOP(unsupported_request_is_refused, 0, N(requests))
{
	struct ibv_send_wr *bad, wr;
	struct ibv_sge sge;
	struct rig rig;

	rig_open(&rig, &rc);
	wr = rig_wr(&rig, requests[_i].opcode, &sge, 8);
	wr.send_flags |= requests[_i].flags;
	ck_assert_int_eq(ibv_post_send(rig.a.qp, &wr, &bad), EINVAL);
	ck_assert_ptr_eq(bad, &wr);
	rig_close(&rig);
}

/* --- everything else ----------------------------------------------------- */

static const struct {
	uint64_t wc_flags;
	uint32_t mask, flags;
	int error;
} queues[] = {
	{ IBV_WC_STANDARD_FLAGS, 0, 0, 0 },
	{ IBV_WC_EX_WITH_COMPLETION_TIMESTAMP, 0, 0, 0 },
	{ IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK, IBV_CQ_INIT_ATTR_MASK_FLAGS,
	  IBV_CREATE_CQ_ATTR_SINGLE_THREADED, 0 },
	{ IBV_WC_EX_WITH_TM_INFO, 0, 0, EOPNOTSUPP },
	{ UINT64_C(1) << 63, 0, 0, EOPNOTSUPP },
	{ 0, IBV_CQ_INIT_ATTR_MASK_FLAGS, IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN, EOPNOTSUPP },
	{ 0, 1u << 31, 0, EOPNOTSUPP },
};

TEST_LOOP(unsupported_completion_queue_is_refused, 0, N(queues))
{
	struct ibv_cq_init_attr_ex init = {
		.cqe = 4,
		.wc_flags = queues[_i].wc_flags,
		.comp_mask = queues[_i].mask,
		.flags = queues[_i].flags,
	};
	struct ibv_cq_ex *cq;
	struct rig rig;

	rig_open(&rig, &rc);
	errno = 0;
	cq = ibv_create_cq_ex(rig.verbs, &init);
	ck_assert_int_eq(errno, queues[_i].error);
	ck_assert_int_eq(!cq, errno != 0);
	if (cq)
		ck_assert_int_eq(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)), 0);
	rig_close(&rig);
}

static const struct {
	enum ibv_srq_type type;
	uint32_t mask;
	int error;
} shared_queues[] = {
	{ IBV_SRQT_BASIC, IBV_SRQ_INIT_ATTR_TYPE, 0 },
	{ IBV_SRQT_XRC, IBV_SRQ_INIT_ATTR_TYPE, EOPNOTSUPP }, /* likewise */
	{ IBV_SRQT_TM, IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_TM, EOPNOTSUPP },
	{ 77, IBV_SRQ_INIT_ATTR_TYPE, EOPNOTSUPP },
	{ 0, 1u << 31, EOPNOTSUPP },
};

TEST_LOOP(unsupported_shared_receive_queue_is_refused, 0, N(shared_queues))
{
	struct ibv_srq_init_attr_ex init = {
		.attr = { .max_wr = 1, .max_sge = 1 },
		.srq_type = shared_queues[_i].type,
		.comp_mask = IBV_SRQ_INIT_ATTR_PD | shared_queues[_i].mask,
	};
	struct ibv_srq *srq;
	struct rig rig;

	rig_open(&rig, &rc);
	init.pd = rig.pd;
	errno = 0;
	srq = ibv_create_srq_ex(rig.verbs, &init);
	ck_assert_int_eq(errno, shared_queues[_i].error);
	ck_assert_int_eq(!srq, errno != 0);
	if (srq)
		ck_assert_int_eq(ibv_destroy_srq(srq), 0);
	rig_close(&rig);
}

TEST(unsupported_objects_are_refused)
{
	struct ibv_counters_init_attr counters = { .comp_mask = 0 };
	struct ibv_qp_open_attr open = { .comp_mask = 0 };
	struct ibv_wq_init_attr wq = { .max_wr = 1 };
	struct rig rig;

	rig_open(&rig, &rc);
#define REFUSED(call)                                \
	do {                                         \
		errno = 0;                           \
		ck_assert_ptr_null(call);            \
		ck_assert_int_eq(errno, EOPNOTSUPP); \
	} while (0)
	REFUSED(ibv_create_counters(rig.verbs, &counters));
	REFUSED(ibv_open_qp(rig.verbs, &open));
	REFUSED(ibv_create_wq(rig.verbs, &wq));
	REFUSED(ibv_alloc_null_mr(rig.pd));
#undef REFUSED
	rig_close(&rig);
}

/* --- objects of another context ------------------------------------------ */

/*
 * The object of the request that belongs to another context. The errors are those of rxe of Linux
 * 6.1.
 */
enum foreign {
	SEND_CQ,
	RECV_CQ,
	SRQ,
	CHANNEL,
	PD_OF_MR,
	PD_OF_DOMAIN,
	PD_OF_SRQ,
	XRCD,
	CQ_OF_SRQ,
	DM,
	WINDOW,
	N_FOREIGN,
};

struct other {
	struct ibv_context *verbs;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_srq *srq;
	struct ibv_comp_channel *channel;
	struct ibv_xrcd *xrcd;
	struct ibv_dm *dm;
	struct ibv_mw *mw;
};

static void open_other(struct other *ret, const struct rig *rig)
{
	struct ibv_srq_init_attr srq = { .attr = { .max_wr = 1, .max_sge = 1 } };
	struct ibv_xrcd_init_attr xrcd = { .comp_mask = 3, .fd = -1, .oflags = O_CREAT };
	struct ibv_alloc_dm_attr dm = { .length = 64 };

	ret->verbs = ibv_open_device(rig->verbs->device);
	ck_assert_ptr_nonnull(ret->verbs);
	ret->pd = ibv_alloc_pd(ret->verbs);
	ret->cq = ibv_create_cq(ret->verbs, 1, NULL, NULL, 0);
	ret->srq = ibv_create_srq(ret->pd, &srq);
	ret->channel = ibv_create_comp_channel(ret->verbs);
	ret->xrcd = ibv_open_xrcd(ret->verbs, &xrcd);
	ret->dm = ibv_alloc_dm(ret->verbs, &dm);
	ret->mw = ibv_alloc_mw(ret->pd, IBV_MW_TYPE_1);
	ck_assert(ret->pd && ret->cq && ret->srq && ret->channel && ret->xrcd && ret->dm &&
		  ret->mw);
}

static void close_other(struct other *other)
{
	ck_assert_int_eq(ibv_dealloc_mw(other->mw), 0);
	ck_assert_int_eq(ibv_free_dm(other->dm), 0);
	ck_assert_int_eq(ibv_close_xrcd(other->xrcd), 0);
	ck_assert_int_eq(ibv_destroy_comp_channel(other->channel), 0);
	ck_assert_int_eq(ibv_destroy_srq(other->srq), 0);
	ck_assert_int_eq(ibv_destroy_cq(other->cq), 0);
	ck_assert_int_eq(ibv_dealloc_pd(other->pd), 0);
	ck_assert_int_eq(ibv_close_device(other->verbs), 0);
}

static bool makes_qp(struct rig *rig, const struct other *other, enum foreign which)
{
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC,
		.send_cq = which == SEND_CQ ? other->cq : rig->a.cq,
		.recv_cq = which == RECV_CQ ? other->cq : rig->a.cq,
		.srq = which == SRQ ? other->srq : NULL,
		.cap = { 1, 1, 1, 1, 0 },
	};

	return ibv_create_qp(rig->pd, &init);
}

static bool makes_srq(struct rig *rig, const struct other *other, enum foreign which)
{
	struct ibv_xrcd_init_attr own = { .comp_mask = 3, .fd = -1, .oflags = O_CREAT };
	struct ibv_xrcd *xrcd = ibv_open_xrcd(rig->verbs, &own);
	struct ibv_srq_init_attr_ex init = {
		.attr = { .max_wr = 1, .max_sge = 1 },
		.srq_type = IBV_SRQT_XRC,
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD |
			     IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ,
		.pd = which == PD_OF_SRQ ? other->pd : rig->pd,
		.xrcd = which == XRCD ? other->xrcd : xrcd,
		.cq = which == CQ_OF_SRQ ? other->cq : rig->a.cq,
	};
	struct ibv_srq *srq = ibv_create_srq_ex(rig->verbs, &init);
	int err = errno;

	ibv_close_xrcd(xrcd);
	errno = err;
	return srq;
}

static bool makes(struct rig *rig, const struct other *other, enum foreign which)
{
	struct ibv_parent_domain_init_attr domain = { .pd = other->pd };
	struct ibv_mw_bind bind = { .wr_id = 0 };

	switch (which) {
	case CHANNEL:
		return ibv_create_cq(rig->verbs, 1, NULL, other->channel, 0);
	case PD_OF_MR:
		return !ibv_rereg_mr(rig->a.mr, IBV_REREG_MR_CHANGE_PD, other->pd, NULL, 0, 0);
	case PD_OF_DOMAIN:
		return ibv_alloc_parent_domain(rig->verbs, &domain);
	case PD_OF_SRQ:
	case XRCD:
	case CQ_OF_SRQ:
		return makes_srq(rig, other, which);
	case DM:
		return ibv_reg_dm_mr(rig->pd, other->dm, 0, 64, IBV_ACCESS_ZERO_BASED);
	case WINDOW:
		errno = ibv_bind_mw(rig->a.qp, other->mw, &bind);
		return !errno;
	case SEND_CQ:
	case RECV_CQ:
	case SRQ:
	case N_FOREIGN:
		break;
	}
	return makes_qp(rig, other, which);
}

TEST_LOOP(object_of_another_context_is_refused, 0, N_FOREIGN)
{
	struct other other;
	struct rig rig;

	rig_open(&rig, &rc);
	open_other(&other, &rig);
	ck_assert(!makes(&rig, &other, (enum foreign)_i));
	ck_assert_int_eq(errno, _i == CHANNEL ? EBADF : _i == WINDOW ? EINVAL : ENOENT);
	close_other(&other);
	rig_close(&rig);
}

TEST(failed_command_returns_its_errno_and_sets_it)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RTR };
	union ibv_gid gid = { .raw = { 0xff } };
	struct ibv_port_attr port;
	struct rig rig;

	rig_open(&rig, &rc);
#define SETS(call, error)                       \
	do {                                    \
		errno = 0;                      \
		ck_assert_int_eq(call, error);  \
		ck_assert_int_eq(errno, error); \
	} while (0)
	SETS(ibv_modify_qp(rig.a.qp, &attr, IBV_QP_STATE), EINVAL);
	SETS(ibv_resize_cq(rig.a.cq, -1), EINVAL);
	SETS(ibv_attach_mcast(rig.a.qp, &gid, 0), EINVAL);
	SETS(ibv_detach_mcast(rig.a.qp, &gid, 0), EINVAL);
	SETS(ibv_query_port(rig.verbs, 9, &port), EINVAL);
	SETS(ibv_destroy_cq(rig.a.cq), EBUSY);
	SETS(ibv_dealloc_pd(rig.pd), EBUSY);
#undef SETS
	rig_close(&rig);
}
