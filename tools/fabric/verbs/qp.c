/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Queue pairs: create, destroy, query. ibv_modify_qp() is in modify.c.
 */
#include "tools/fabric/verbs/address.h"
#include "tools/fabric/verbs/qp.h"

#include <errno.h>
#include <stdlib.h>

#include "tools/fabric/verbs/ack.h"
#include "tools/fabric/verbs/carrier.h"
#include "tools/fabric/verbs/completion.h"
#include "tools/fabric/verbs/context.h"
#include "tools/fabric/verbs/direct.h"
#include "tools/fabric/verbs/engine.h"
#include "tools/fabric/verbs/grant.h"
#include "tools/fabric/verbs/receive_queue.h"
#include "tools/fabric/verbs/transport.h"
#include "tools/fabric/verbs/window.h"
#include "tools/fabric/wire/quirks.h"

#define INLINE_GIVEN 64

#define SAME_BIT(flag, opcode) \
	_Static_assert((flag) == 1 << (opcode), "is_supported() compares these bits")

SAME_BIT(IBV_QP_EX_WITH_RDMA_WRITE, IBV_WR_RDMA_WRITE);
SAME_BIT(IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM, IBV_WR_RDMA_WRITE_WITH_IMM);
SAME_BIT(IBV_QP_EX_WITH_SEND, IBV_WR_SEND);
SAME_BIT(IBV_QP_EX_WITH_SEND_WITH_IMM, IBV_WR_SEND_WITH_IMM);
SAME_BIT(IBV_QP_EX_WITH_RDMA_READ, IBV_WR_RDMA_READ);
SAME_BIT(IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP, IBV_WR_ATOMIC_CMP_AND_SWP);
SAME_BIT(IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD, IBV_WR_ATOMIC_FETCH_AND_ADD);
SAME_BIT(IBV_QP_EX_WITH_LOCAL_INV, IBV_WR_LOCAL_INV);
SAME_BIT(IBV_QP_EX_WITH_BIND_MW, IBV_WR_BIND_MW);
SAME_BIT(IBV_QP_EX_WITH_SEND_WITH_INV, IBV_WR_SEND_WITH_INV);

static int check_type(enum ibv_qp_type type)
{
	switch (type) {
	case IBV_QPT_RC:
	case IBV_QPT_UC:
	case IBV_QPT_UD:
	case IBV_QPT_XRC_SEND:
	case IBV_QPT_XRC_RECV:
		return 0;
	case IBV_QPT_RAW_PACKET:
	case IBV_QPT_DRIVER:
		return EOPNOTSUPP;
	}
	return EINVAL;
}

static uint32_t inline_max(const struct fab_page *page, enum ibv_qp_type type)
{
	return page->limit[type == IBV_QPT_UD ? FAB_LIMIT_UD_INLINE : FAB_LIMIT_INLINE];
}

/* The program need not provide queues that the type does not have. */
static bool has_sends(enum ibv_qp_type type)
{
	return type != IBV_QPT_XRC_RECV;
}

static bool is_xrc(enum ibv_qp_type type)
{
	return type == IBV_QPT_XRC_SEND || type == IBV_QPT_XRC_RECV;
}

static bool has_receives(const struct ibv_qp_init_attr *init)
{
	return !is_xrc(init->qp_type) && !init->srq;
}

static bool lacks_queue(const struct ibv_qp_init_attr *init)
{
	if (!has_sends(init->qp_type))
		return false;
	return !init->send_cq || (!init->recv_cq && init->qp_type != IBV_QPT_XRC_SEND);
}

static bool has_foreign(const struct ibv_context *verbs, const struct ibv_pd *pd,
			const struct ibv_xrcd *xrcd, const struct ibv_qp_init_attr *init)
{
	if (IS_FOREIGN(pd, verbs) || IS_FOREIGN(xrcd, verbs) ||
	    (has_sends(init->qp_type) && IS_FOREIGN(init->send_cq, verbs)))
		return true;
	return !is_xrc(init->qp_type) &&
	       (IS_FOREIGN(init->recv_cq, verbs) || IS_FOREIGN(init->srq, verbs));
}

static int check_init(const struct fab_page *page, const struct ibv_qp_init_attr *init)
{
	const struct ibv_qp_cap *cap = &init->cap;
	int err = check_type(init->qp_type);

	if (err)
		return err;
	if (init->qp_type != IBV_QPT_UD && fab_has_quirk(page, FAB_QUIRK_NO_CM))
		return EOPNOTSUPP;
	if (lacks_queue(init))
		return EINVAL;
	if (cap->max_send_wr > page->limit[FAB_LIMIT_WR] || cap->max_send_sge > FAB_SGE_MAX ||
	    cap->max_inline_data > inline_max(page, init->qp_type))
		return EINVAL;
	/* With a shared queue, receive limits are ignored. */
	if (has_receives(init) &&
	    (cap->max_recv_wr > page->limit[FAB_LIMIT_WR] || cap->max_recv_sge > FAB_SGE_MAX))
		return EINVAL;
	return 0;
}

/* Locked. Numbers are reused as late as possible. */
static int take_number(struct fab_context *context, struct fab_qp *qp)
{
	uint32_t i, index;

	for (i = 1; i <= FAB_SLOT_QPS; i++) {
		index = (context->last_qp + i) % FAB_SLOT_QPS;
		if (context->qp[index])
			continue;
		context->qp[index] = qp;
		context->last_qp = index;
		from_qp(qp)->qp_num = context->slot << FAB_SLOT_SHIFT | index;
		return 0;
	}
	return -ENOMEM;
}

static void fill_qp(struct fab_qp *qp, const struct ibv_qp_init_attr *init)
{
	struct ibv_qp *ibv = from_qp(qp);

	qp->init = *init;
	ibv->qp_context = init->qp_context;
	ibv->send_cq = has_sends(init->qp_type) ? init->send_cq : NULL;
	ibv->recv_cq = is_xrc(init->qp_type) ? NULL : init->recv_cq;
	ibv->srq = is_xrc(init->qp_type) ? NULL : init->srq;
	ibv->qp_type = init->qp_type;
	ibv->state = IBV_QPS_RESET;
	pthread_mutex_init(&ibv->mutex, NULL);
	pthread_cond_init(&ibv->cond, NULL);
	pthread_mutex_init(&qp->batch_lock, NULL);
	list_init(&qp->active);
	list_init(&qp->unacked);
	list_init(&qp->attached);
	qp->sq.n_max = has_sends(init->qp_type) ? init->cap.max_send_wr : 0;
	qp->sq.max_sge = init->cap.max_send_sge;
	qp->sq.max_inline = init->cap.max_inline_data;
	receive_queue_init(&qp->rq, has_receives(init) ? init->cap.max_recv_wr : 0,
			   init->cap.max_recv_sge);
}

/* Locked. */
static void count_references(struct fab_qp *qp, int by)
{
	struct ibv_qp *ibv = from_qp(qp);

	if (ibv->pd)
		to_pd(ibv->pd)->refs += (unsigned int)by;
	if (qp->xrcd)
		qp->xrcd->refs += (unsigned int)by;
	if (ibv->send_cq)
		to_cq(ibv->send_cq)->refs += (unsigned int)by;
	if (ibv->recv_cq)
		to_cq(ibv->recv_cq)->refs += (unsigned int)by;
	if (ibv->srq)
		to_srq(ibv->srq)->refs += (unsigned int)by;
}

static int enter_qp(struct fab_context *context, struct fab_qp *qp)
{
	int err;

	pthread_mutex_lock(&context->lock);
	err = context->is_removed ? -EIO : context_start(context);
	if (!err)
		err = take_number(context, qp);
	if (!err) {
		from_qp(qp)->handle = context_handle(context);
		count_references(qp, 1);
	}
	pthread_mutex_unlock(&context->lock);
	return err;
}

static void qp_free(struct fab_qp *qp)
{
	uint32_t i;

	for (i = 0; qp->sq.slot && i < qp->sq.n_max; i++)
		free(qp->sq.slot[i]);
	free(qp->sq.slot);
	receive_queue_fini(&qp->rq);
	free(qp->responder.replay);
	free(qp->responder.response);
	free(qp->receive_buffer);
	batch_free(qp->batch);
	free(qp);
}

/* @pd: optional for an XRC target, whose access rights are those of the XRC domain. */
static struct ibv_qp *create_qp(struct ibv_context *verbs, struct ibv_pd *pd, struct ibv_xrcd *xrcd,
				struct ibv_qp_init_attr *init)
{
	struct fab_context *context = to_context(verbs);
	struct fab_qp *qp;
	const struct fab_page *page = context->device->page;
	int err = check_init(page, init);
	uint32_t n_inline;

	if (!err && has_foreign(verbs, pd, xrcd, init))
		err = ENOENT;
	if (err) {
		errno = err;
		return NULL;
	}
	/* A device may provide more inline data than requested; here it is cheap. */
	n_inline = inline_max(page, init->qp_type);
	if (n_inline > INLINE_GIVEN)
		n_inline = INLINE_GIVEN;
	if (init->cap.max_inline_data < n_inline)
		init->cap.max_inline_data = n_inline;
	qp = calloc(1, sizeof(*qp));
	if (!qp)
		return NULL;
	fill_qp(qp, init);
	from_qp(qp)->context = verbs;
	from_qp(qp)->pd = pd;
	qp->xrcd = xrcd ? container_of(xrcd, struct fab_xrcd, ibv) : NULL;
	err = enter_qp(context, qp);
	if (!err)
		return from_qp(qp);
	qp_free(qp);
	errno = -err;
	return NULL;
}

struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *init)
{
	if (init->qp_type != IBV_QPT_XRC_RECV)
		return create_qp(pd->context, pd, NULL, init);
	errno = EINVAL;
	return NULL;
}

static uint64_t move_bit(uint64_t bits, unsigned int from, uint64_t to)
{
	uint64_t bit = UINT64_C(1) << from;

	return bits & bit ? (bits & ~bit) | to : bits;
}

/* The flag of an ibv_wr_*() operation is the bit of its opcode, with two exceptions. */
static uint64_t send_ops(enum ibv_qp_type type)
{
	return move_bit(move_bit(post_opcodes(type), FAB_WR_FLUSH, FAB_QP_EX_WITH_FLUSH),
			IBV_WR_ATOMIC_WRITE, IBV_QP_EX_WITH_ATOMIC_WRITE);
}

static bool is_supported(const struct ibv_qp_init_attr_ex *attr)
{
	const uint32_t known = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_CREATE_FLAGS |
			       IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
	bool is_target = attr->qp_type == IBV_QPT_XRC_RECV;
	uint32_t mask = attr->comp_mask;

	if (!(mask & (is_target ? IBV_QP_INIT_ATTR_XRCD : IBV_QP_INIT_ATTR_PD)) ||
	    mask & ~(is_target ? known | IBV_QP_INIT_ATTR_XRCD : known))
		return false;
	if (mask & IBV_QP_INIT_ATTR_CREATE_FLAGS && attr->create_flags)
		return false;
	return !(mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS) ||
	       !(attr->send_ops_flags & ~send_ops(attr->qp_type));
}

struct ibv_qp *qp_create_ex(struct ibv_context *verbs, struct ibv_qp_init_attr_ex *attr)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp *qp;

	bool is_target = attr->qp_type == IBV_QPT_XRC_RECV;

	if (!is_supported(attr)) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	memcpy(&init, attr, sizeof(init));
	qp = create_qp(verbs, attr->comp_mask & IBV_QP_INIT_ATTR_PD ? attr->pd : NULL,
		       is_target ? attr->xrcd : NULL, &init);
	if (!qp)
		return NULL;
	memcpy(attr, &init, sizeof(init));
	if (!(attr->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS))
		return qp;
	to_qp(qp)->batch = batch_new(&to_qp(qp)->ex, attr->send_ops_flags);
	if (to_qp(qp)->batch)
		return qp;
	ibv_destroy_qp(qp);
	errno = ENOMEM;
	return NULL;
}

struct ibv_qp_ex *ibv_qp_to_qp_ex(struct ibv_qp *qp)
{
	return to_qp(qp)->batch ? &to_qp(qp)->ex : NULL;
}

static void wait_for_acks(struct fab_qp *qp)
{
	struct ibv_qp *ibv = from_qp(qp);

	pthread_mutex_lock(&ibv->mutex);
	while (ibv->events_completed != qp->n_async_events)
		pthread_cond_wait(&ibv->cond, &ibv->mutex);
	pthread_mutex_unlock(&ibv->mutex);
}

static void drop_number(struct fab_qp *qp)
{
	if (has_number(qp))
		context_of(qp)->qp[from_qp(qp)->qp_num % FAB_SLOT_QPS] = NULL;
}

int ibv_destroy_qp(struct ibv_qp *ibv)
{
	struct fab_context *context = to_context(ibv->context);
	struct fab_qp *qp = to_qp(ibv);

	pthread_mutex_lock(&context->lock);
	if (qp->n_mgids) {
		pthread_mutex_unlock(&context->lock);
		return command_return(EBUSY);
	}
	/* The memory of its receives may be gone. */
	if (ibv->qp_type == IBV_QPT_UD)
		drop_number(qp);
	context_catch_up(context);
	/* Executed requests are acknowledged, or the peer would report an error. */
	ack_send(qp);
	window_forget(qp);
	grant_end(qp);
	direct_close(qp);
	drop_number(qp);
	list_remove(&qp->active);
	list_remove(&qp->unacked);
	qp_forget(qp);
	count_references(qp, -1);
	context->n_objects--;
	event_queue_forget(&context->async, qp);
	context_unlock(context);
	wait_for_acks(qp);
	address_hold(context->device, &qp->held, NULL);
	qp_free(qp);
	return 0;
}

int ibv_query_qp(struct ibv_qp *ibv, struct ibv_qp_attr *attr, int attr_mask,
		 struct ibv_qp_init_attr *init)
{
	struct fab_context *context = to_context(ibv->context);
	struct fab_qp *qp = to_qp(ibv);

	(void)attr_mask; /* more attributes than requested may be returned */
	pthread_mutex_lock(&context->lock);
	*attr = qp->attr;
	attr->cur_qp_state = attr->qp_state;
	attr->cap = qp->init.cap;
	attr->sq_psn = (uint32_t)qp->sq.post_psn & FAB_PSN_MASK;
	attr->rq_psn = qp->responder.psn;
	attr->sq_draining = attr->qp_state == IBV_QPS_SQD && !requester_is_drained(qp);
	*init = qp->init;
	ibv->state = attr->qp_state;
	pthread_mutex_unlock(&context->lock);
	return 0;
}
