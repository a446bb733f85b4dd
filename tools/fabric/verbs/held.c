/* SPDX-License-Identifier: BSD-2-Clause */
/* Completions that are held back: see held.h. */
#include "tools/fabric/verbs/held.h"

#include "tools/fabric/verbs/ack.h"
#include "tools/fabric/verbs/tick.h"

#define HELD_POLLS 64 /* long enough for the peer's program to answer */
#define HELD_TICKS 2  /* the first may come at once */

static bool is_last_in(const struct fab_qp *qp, const struct fab_cq *cq)
{
	const struct ibv_wc *last = &cq->ring[(cq->head + cq->count - 1) % cq->n].wc;

	return cq->count && last->qp_num == qp->ex.qp_base.qp_num &&
	       last->opcode == IBV_WC_RDMA_WRITE;
}

void held_consider(struct fab_qp *qp)
{
	struct fab_context *context = context_of(qp);
	struct fab_cq *cq = to_cq(qp->ex.qp_base.send_cq);

	if (!ack_takes_turns(qp) || !qp->responder.answers_by_write ||
	    qp->responder.is_unanswered || qp->sq.count || context->held ||
	    cq->arm != FAB_ARM_NONE || !is_last_in(qp, cq))
		return;
	cq->is_last_held = true;
	context->held = qp;
	context->held_polls = context->held_ticks = 0;
	tick_start(context);
}

void held_show(struct fab_context *context)
{
	if (!context->held)
		return;
	to_cq(context->held->ex.qp_base.send_cq)->is_last_held = false;
	context->held = NULL;
}

static void give_up(struct fab_context *context)
{
	ack_end_turns(context->held);
	held_show(context);
}

void held_polled(struct fab_context *context)
{
	if (context->held && ++context->held_polls == HELD_POLLS)
		give_up(context);
}

void held_ticked(struct fab_context *context)
{
	if (context->held && ++context->held_ticks == HELD_TICKS)
		give_up(context);
}
