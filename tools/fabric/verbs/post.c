/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Posting sends: errors in a work request are refused at once, all others become completions in
 * error.
 */
#include <errno.h>
#include <stdlib.h>

#include "tools/fabric/verbs/ack.h"
#include "tools/fabric/verbs/carrier.h"
#include "tools/fabric/verbs/completion.h"
#include "tools/fabric/verbs/qp.h"
#include "tools/fabric/verbs/transport.h"

#define BIT(opcode) (1u << (opcode))
#define ATOMICS	    (BIT(IBV_WR_ATOMIC_CMP_AND_SWP) | BIT(IBV_WR_ATOMIC_FETCH_AND_ADD))
#define SENDS	    (BIT(IBV_WR_SEND) | BIT(IBV_WR_SEND_WITH_IMM))
#define WRITES	    (BIT(IBV_WR_RDMA_WRITE) | BIT(IBV_WR_RDMA_WRITE_WITH_IMM))
#ifdef FAB_HAS_FLUSH
#define FLUSH BIT(FAB_WR_FLUSH)
#else
#define FLUSH 0u
#endif
#define LOCALS	     (BIT(IBV_WR_LOCAL_INV) | BIT(IBV_WR_BIND_MW))
#define FLAGS	     (IBV_SEND_FENCE | IBV_SEND_SIGNALED | IBV_SEND_SOLICITED | IBV_SEND_INLINE)
#define ATOMIC_BYTES 8

/* IBTA vol. 1, table 71: the operations of each service. */
unsigned int post_opcodes(enum ibv_qp_type type)
{
	if (type == IBV_QPT_XRC_RECV)
		return 0;
	if (type == IBV_QPT_RC || type == IBV_QPT_XRC_SEND)
		return SENDS | BIT(IBV_WR_SEND_WITH_INV) | WRITES | BIT(IBV_WR_RDMA_READ) |
		       ATOMICS | BIT(IBV_WR_ATOMIC_WRITE) | FLUSH | LOCALS;
	return type == IBV_QPT_UC ? SENDS | WRITES | LOCALS : SENDS;
}

static bool is_atomic(enum ibv_wr_opcode opcode)
{
	return BIT(opcode) & ATOMICS;
}

static int n_sge_of(const struct ibv_send_wr *wr)
{
	return BIT(wr->opcode) & LOCALS ? 0 : wr->num_sge;
}

static uint64_t bytes_of(const struct ibv_send_wr *wr)
{
	uint64_t bytes = 0;
	int i;

	for (i = 0; i < n_sge_of(wr); i++)
		bytes += wr->sg_list[i].length;
	return bytes;
}

/* Binding nothing needs no region. */
static bool is_bind(const struct fab_qp *qp, const struct ibv_send_wr *wr)
{
	const struct ibv_context *verbs = qp->ex.qp_base.context;

	if (IS_FOREIGN(wr->bind_mw.mw, verbs) || IS_FOREIGN(wr->bind_mw.bind_info.mr, verbs))
		return false;
	return wr->bind_mw.mw && (wr->bind_mw.bind_info.mr || !wr->bind_mw.bind_info.length) &&
	       (wr->bind_mw.mw->rkey ^ wr->bind_mw.rkey) <= UINT8_MAX;
}

static int check_send(const struct fab_qp *qp, const struct ibv_send_wr *wr, unsigned int opcodes)
{
	uint64_t bytes;

	if ((unsigned int)wr->opcode > IBV_WR_ATOMIC_WRITE || !(opcodes & BIT(wr->opcode)))
		return EINVAL;
	if (wr->send_flags & ~(unsigned int)FLAGS)
		return EINVAL;
	if (n_sge_of(wr) < 0 || (uint32_t)n_sge_of(wr) > qp->sq.max_sge)
		return EINVAL;
	if (wr->opcode == IBV_WR_BIND_MW && !is_bind(qp, wr))
		return EINVAL;
	bytes = bytes_of(wr);
	if (bytes > FAB_MSG_MAX)
		return EINVAL;
	if (wr->send_flags & IBV_SEND_INLINE &&
	    (bytes > qp->sq.max_inline || wr->opcode == IBV_WR_RDMA_READ || is_atomic(wr->opcode)))
		return EINVAL;
	if ((is_atomic(wr->opcode) || wr->opcode == IBV_WR_ATOMIC_WRITE) && bytes != ATOMIC_BYTES)
		return EINVAL;
	if (qp->init.qp_type == IBV_QPT_UD &&
	    (!wr->wr.ud.ah || !is_same_domain(wr->wr.ud.ah->pd, qp->ex.qp_base.pd)))
		return EINVAL;
	return qp->sq.count >= qp->sq.n_max ? ENOMEM : 0;
}

/* The next free slot, whose memory is reused. Return: NULL on ENOMEM. */
static struct fab_send *take_slot(struct fab_qp *qp)
{
	struct fab_send_queue *sq = &qp->sq;
	uint32_t at = (sq->head + sq->count) % sq->n_max;

	if (!sq->slot)
		sq->slot = calloc(sq->n_max, sizeof(struct fab_send *));
	if (sq->slot && !sq->slot[at])
		sq->slot[at] = malloc(sizeof(struct fab_send) + sq->max_inline);
	return sq->slot ? sq->slot[at] : NULL;
}

static void copy_inline(struct fab_send *send, const struct ibv_send_wr *wr)
{
	char *to = (char *)(send + 1);
	int i;

	send->inline_data = to;
	for (i = 0; i < n_sge_of(wr); i++) {
		memcpy(to, (const void *)(uintptr_t)wr->sg_list[i].addr, wr->sg_list[i].length);
		to += wr->sg_list[i].length;
	}
}

static void fill_bind(struct fab_send *send, const struct ibv_send_wr *wr)
{
	const struct ibv_mw_bind_info *bind = &wr->bind_mw.bind_info;

	send->rkey = wr->bind_mw.rkey;
	send->bind_lkey = bind->mr ? bind->mr->lkey : 0;
	send->remote_addr = bind->addr;
	send->bind_bytes = bind->length;
	send->bind_access = bind->mw_access_flags;
}

/* A flush is stored in the members of an atomic: see post_batch(). */
static void fill_flush(struct fab_send *send, const struct ibv_send_wr *wr)
{
	send->remote_addr = wr->wr.atomic.remote_addr;
	send->rkey = wr->wr.atomic.rkey;
	send->bind_bytes = wr->wr.atomic.compare_add;
	send->flush = (uint8_t)wr->wr.atomic.swap;
}

static void fill_remote(struct fab_send *send, const struct fab_qp *qp,
			const struct ibv_send_wr *wr)
{
	send->remote_srqn = 0;
	if (qp->init.qp_type == IBV_QPT_XRC_SEND)
		send->remote_srqn = wr->qp_type.xrc.remote_srqn & FAB_PSN_MASK;
	if (qp->init.qp_type == IBV_QPT_UD) {
		send->ah = to_ah(wr->wr.ud.ah);
		send->remote_qpn = wr->wr.ud.remote_qpn;
		send->remote_qkey = wr->wr.ud.remote_qkey;
	} else if (is_atomic(wr->opcode)) {
		send->remote_addr = wr->wr.atomic.remote_addr;
		send->rkey = wr->wr.atomic.rkey;
		send->compare_add = wr->wr.atomic.compare_add;
		send->swap = wr->wr.atomic.swap;
	} else if ((int)wr->opcode == FAB_WR_FLUSH) {
		fill_flush(send, wr);
	} else if (wr->opcode == IBV_WR_BIND_MW) {
		fill_bind(send, wr);
	} else if (BIT(wr->opcode) & (BIT(IBV_WR_LOCAL_INV) | BIT(IBV_WR_SEND_WITH_INV))) {
		send->rkey = wr->invalidate_rkey;
	} else {
		send->remote_addr = wr->wr.rdma.remote_addr;
		send->rkey = wr->wr.rdma.rkey;
	}
}

static void fill_send(struct fab_send *send, struct fab_qp *qp, const struct ibv_send_wr *wr)
{
	int i;

	send->wr_id = wr->wr_id;
	send->opcode = wr->opcode;
	send->flags = wr->send_flags;
	send->bytes = bytes_of(wr);
	send->imm = wr->imm_data;
	send->inline_data = NULL;
	send->n_sge = (uint32_t)n_sge_of(wr);
	fill_remote(send, qp, wr);
	if (wr->send_flags & IBV_SEND_INLINE)
		copy_inline(send, wr);
	else
		for (i = 0; i < n_sge_of(wr); i++)
			send->sge[i] = wr->sg_list[i];
	send->first_psn = qp->sq.post_psn;
	send->part_psns = 0;
	/* A datagram is one packet, and uses no PSN of the peer. */
	send->n_psn = BIT(wr->opcode) & LOCALS ? 0 : 1;
	if (qp->payload_bytes && send->bytes)
		send->n_psn = (uint32_t)((send->bytes - 1) / qp->payload_bytes) + 1;
	qp->sq.post_psn += send->n_psn;
}

static int append_send(struct fab_qp *qp, const struct ibv_send_wr *wr, unsigned int opcodes)
{
	struct fab_send *send;
	int err = check_send(qp, wr, opcodes);

	if (err)
		return err;
	send = take_slot(qp);
	if (!send)
		return ENOMEM;
	fill_send(send, qp, wr);
	qp->sq.count++;
	return 0;
}

static void send_datagrams(struct fab_qp *qp)
{
	enum ibv_wc_status status;

	while (qp->sq.count && qp->attr.qp_state == IBV_QPS_RTS) {
		status = datagram_send(qp, qp->sq.slot[qp->sq.head]);
		if (status == IBV_WC_SUCCESS)
			send_done(qp, status);
		else
			qp_fail(qp, status);
	}
}

void post_start(struct fab_qp *qp)
{
	switch (qp->attr.qp_state) {
	case IBV_QPS_RTS:
		if (qp->init.qp_type == IBV_QPT_UD)
			send_datagrams(qp);
		else
			requester_push(qp);
		return;
	case IBV_QPS_ERR:
		qp_flush(qp);
		return;
	case IBV_QPS_SQE:
		while (qp->sq.count)
			send_done(qp, IBV_WC_WR_FLUSH_ERR);
		return;
	case IBV_QPS_SQD: /* they wait */
	case IBV_QPS_RESET:
	case IBV_QPS_INIT:
	case IBV_QPS_RTR:
	case IBV_QPS_UNKNOWN:
		return;
	}
}

/* @bad: NULL if nothing may be posted unless all of it is. */
static int post_list(struct ibv_qp *ibv, struct ibv_send_wr *wr, struct ibv_send_wr **bad,
		     unsigned int opcodes)
{
	struct fab_context *context = to_context(ibv->context);
	struct fab_qp *qp = to_qp(ibv);
	/*
	 * A peer that watches its memory for an answer looks there after its own write is complete:
	 * then the answer has to be there. Others take completions in the order of a device.
	 */
	bool is_watched = wr && wr->opcode == IBV_WR_RDMA_WRITE;
	uint64_t post_psn;
	uint32_t count;
	int err = 0;

	pthread_mutex_lock(&context->lock);
	post_psn = qp->sq.post_psn;
	count = qp->sq.count;
	qp->responder.answers_by_write = is_watched;
	/* IBTA vol. 1, 10.3.1: nothing may be posted before RTS. */
	if (qp->attr.qp_state < IBV_QPS_RTS)
		err = EINVAL;
	for (; !err && wr; wr = wr->next) {
		err = append_send(qp, wr, opcodes);
		if (err)
			break;
	}
	if (err && bad) {
		*bad = wr;
	} else if (err) {
		qp->sq.post_psn = post_psn;
		qp->sq.count = count;
	}
	if (!is_watched)
		ack_answered(qp);
	post_start(qp);
	if (is_watched)
		ack_answered(qp);
	context_unlock(context);
	return err;
}

/* struct ibv_send_wr has no members for a flush. */
int post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	return post_list(qp, wr, bad, post_opcodes(qp->qp_type) & ~FLUSH);
}

int post_batch(struct ibv_qp *qp, struct ibv_send_wr *wr)
{
	return post_list(qp, wr, NULL, post_opcodes(qp->qp_type));
}

int post_bind(struct ibv_qp *qp, struct ibv_mw *mw, struct ibv_mw_bind *bind)
{
	struct ibv_send_wr *bad, wr = {
		.wr_id = bind->wr_id,
		.opcode = IBV_WR_BIND_MW,
		.send_flags = bind->send_flags,
		.bind_mw = { mw, ibv_inc_rkey(mw->rkey), bind->bind_info },
	};
	int err = post_send(qp, &wr, &bad);

	if (!err)
		mw->rkey = wr.bind_mw.rkey;
	return err;
}
