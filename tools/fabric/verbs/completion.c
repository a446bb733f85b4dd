/* SPDX-License-Identifier: BSD-2-Clause */
/* Completion of work: completions of sends and receives, and queue pairs in error. */
#include "tools/fabric/verbs/completion.h"

#include "tools/fabric/verbs/ack.h"
#include "tools/fabric/verbs/context.h"
#include "tools/fabric/verbs/grant.h"
#include "tools/fabric/verbs/held.h"
#include "tools/fabric/verbs/receive_queue.h"
#include "tools/fabric/verbs/xrc.h"

static enum ibv_wc_opcode opcode_of(enum ibv_wr_opcode opcode)
{
	static const enum ibv_wc_opcode of[] = {
		[IBV_WR_RDMA_WRITE] = IBV_WC_RDMA_WRITE,
		[IBV_WR_RDMA_WRITE_WITH_IMM] = IBV_WC_RDMA_WRITE,
		[IBV_WR_SEND] = IBV_WC_SEND,
		[IBV_WR_SEND_WITH_IMM] = IBV_WC_SEND,
		[IBV_WR_RDMA_READ] = IBV_WC_RDMA_READ,
		[IBV_WR_ATOMIC_CMP_AND_SWP] = IBV_WC_COMP_SWAP,
		[IBV_WR_ATOMIC_FETCH_AND_ADD] = IBV_WC_FETCH_ADD,
		[IBV_WR_LOCAL_INV] = IBV_WC_LOCAL_INV,
		[IBV_WR_BIND_MW] = IBV_WC_BIND_MW,
		[IBV_WR_SEND_WITH_INV] = IBV_WC_SEND,
		[FAB_WR_FLUSH] = (enum ibv_wc_opcode)FAB_WC_FLUSH,
		[IBV_WR_ATOMIC_WRITE] = IBV_WC_ATOMIC_WRITE,
	};

	return of[opcode];
}

void qp_report_event(struct fab_qp *qp, enum ibv_event_type type)
{
	struct ibv_async_event event = { .event_type = type };

	event.element.qp = from_qp(qp);
	context_report_event(context_of(qp), &event);
}

void send_done(struct fab_qp *qp, enum ibv_wc_status status)
{
	struct fab_send_queue *sq = &qp->sq;
	const struct fab_send *send = sq->slot[sq->head];
	struct ibv_wc wc = {
		.wr_id = send->wr_id,
		.status = status,
		.opcode = opcode_of(send->opcode),
		.byte_len = (uint32_t)send->bytes,
		.qp_num = qp->ex.qp_base.qp_num,
	};

	if (status != IBV_WC_SUCCESS || qp->init.sq_sig_all || send->flags & IBV_SEND_SIGNALED)
		cq_push(to_cq(qp->ex.qp_base.send_cq), &wc, false);
	sq->head = (sq->head + 1) % sq->n_max;
	sq->count--;
	if (sq->at)
		sq->at--;
	if (sq->count == 0)
		list_remove(&qp->active);
}

/* An XRC target has no queues, or its receives use others; an initiator must have one. */
void qp_forget(struct fab_qp *qp)
{
	struct ibv_qp *ibv = from_qp(qp);

	if (context_of(qp)->held == qp)
		held_show(context_of(qp));
	if (ibv->send_cq)
		cq_forget(to_cq(ibv->send_cq), ibv->qp_num);
	if (ibv->recv_cq)
		cq_forget(to_cq(ibv->recv_cq), ibv->qp_num);
}

void qp_drop_message(struct fab_qp *qp)
{
	struct fab_responder *responder = &qp->responder;

	responder->in_message = false;
	responder->nak_sent = false;
	responder->owed = FAB_OWED_NONE;
	responder->is_refused = false;
	responder->n_responses = 0;
	responder->receive = NULL;
	responder->offset = 0;
	responder->next_replay = 0;
	responder->is_unanswered = false;
	responder->turns = 0;
	list_remove(&qp->unacked);
}

void receive_completed(struct fab_qp *qp, const struct ibv_wc *wc, bool solicited)
{
	struct fab_cq *cq = xrc_receive_cq(qp, qp->responder.srqn);

	/* With XRC, the shared receive queue may be gone. */
	if (cq)
		cq_push(cq, wc, solicited);
}

static void flush_receive(struct fab_qp *qp, uint64_t wr_id)
{
	struct ibv_wc wc = {
		.wr_id = wr_id,
		.status = IBV_WC_WR_FLUSH_ERR,
		.opcode = IBV_WC_RECV,
		.qp_num = qp->ex.qp_base.qp_num,
	};

	receive_completed(qp, &wc, false);
}

void qp_flush(struct fab_qp *qp)
{
	struct fab_receive *receive;

	while (qp->sq.count)
		send_done(qp, IBV_WC_WR_FLUSH_ERR);
	if (qp->responder.receive)
		flush_receive(qp, qp->responder.receive->wr_id);
	qp_drop_message(qp);
	while ((receive = receive_queue_first(&qp->rq))) {
		flush_receive(qp, receive->wr_id);
		receive_queue_drop(&qp->rq);
	}
}

void qp_enter_error(struct fab_qp *qp, int event)
{
	if (qp->attr.qp_state == IBV_QPS_ERR)
		return;
	qp->attr.qp_state = IBV_QPS_ERR;
	grant_end(qp);
	qp->sq.deadline_ns = 0;
	qp->sq.waits_for_rnr = false;
	/* Executed requests are acknowledged first. */
	ack_send(qp);
	qp_flush(qp);
	if (event >= 0)
		qp_report_event(qp, (enum ibv_event_type)event);
	if (qp->ex.qp_base.srq)
		qp_report_event(qp, IBV_EVENT_QP_LAST_WQE_REACHED);
}

void qp_fail(struct fab_qp *qp, enum ibv_wc_status status)
{
	send_done(qp, status);
	if (is_reliable(qp)) {
		qp_enter_error(qp, -1);
		return;
	}
	/* IBTA vol. 1, 10.3.1.6: unreliable ones continue to receive. */
	qp->attr.qp_state = IBV_QPS_SQE;
	while (qp->sq.count)
		send_done(qp, IBV_WC_WR_FLUSH_ERR);
}
