/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Receives that wait: of a queue pair, and shared ones.
 */
#include <errno.h>
#include <stdlib.h>

#include "tools/fabric/verbs/completion.h"
#include "tools/fabric/verbs/context.h"
#include "tools/fabric/verbs/qp.h"

void receive_queue_init(struct fab_receive_queue *queue, uint32_t n_max, uint32_t max_sge)
{
	memset(queue, 0, sizeof(*queue));
	queue->n_max = n_max;
	queue->max_sge = max_sge;
	queue->stride = sizeof(struct fab_receive) + max_sge * sizeof(struct ibv_sge);
}

void receive_queue_reset(struct fab_receive_queue *queue)
{
	queue->head = 0;
	queue->count = 0;
}

void receive_queue_fini(struct fab_receive_queue *queue)
{
	free(queue->slot);
	queue->slot = NULL;
}

static struct fab_receive *slot_at(struct fab_receive_queue *queue, uint32_t i)
{
	return (struct fab_receive *)(queue->slot +
				      queue->stride * ((queue->head + i) % queue->n_max));
}

struct fab_receive *receive_queue_first(struct fab_receive_queue *queue)
{
	return queue->count ? slot_at(queue, 0) : NULL;
}

void receive_queue_drop(struct fab_receive_queue *queue)
{
	queue->head = (queue->head + 1) % queue->n_max;
	queue->count--;
}

static int append(struct fab_receive_queue *queue, const struct ibv_recv_wr *wr)
{
	struct fab_receive *slot;
	int i;

	if (wr->num_sge < 0 || (uint32_t)wr->num_sge > queue->max_sge)
		return EINVAL;
	if (queue->count >= queue->n_max)
		return ENOMEM;
	if (!queue->slot)
		queue->slot = calloc(queue->n_max, queue->stride);
	if (!queue->slot)
		return ENOMEM;
	slot = slot_at(queue, queue->count);
	slot->wr_id = wr->wr_id;
	slot->n_sge = (uint32_t)wr->num_sge;
	slot->bytes = 0;
	for (i = 0; i < wr->num_sge; i++) {
		slot->sge[i] = wr->sg_list[i];
		slot->bytes += wr->sg_list[i].length;
	}
	queue->count++;
	return 0;
}

int post_recv(struct ibv_qp *ibv, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	struct fab_context *context = to_context(ibv->context);
	struct fab_qp *qp = to_qp(ibv);
	int err = 0;

	pthread_mutex_lock(&context->lock);
	if (ibv->srq || qp->attr.qp_state == IBV_QPS_RESET)
		err = EINVAL;
	for (; !err && wr; wr = wr->next) {
		err = append(&qp->rq, wr);
		if (err)
			break;
	}
	if (err)
		*bad = wr;
	if (qp->attr.qp_state == IBV_QPS_ERR)
		qp_flush(qp);
	pthread_mutex_unlock(&context->lock);
	return err;
}

int post_srq_recv(struct ibv_srq *ibv, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	struct fab_context *context = to_context(ibv->context);
	int err = 0;

	pthread_mutex_lock(&context->lock);
	for (; !err && wr; wr = wr->next) {
		err = append(&to_srq(ibv)->queue, wr);
		if (err)
			break;
	}
	if (err)
		*bad = wr;
	pthread_mutex_unlock(&context->lock);
	return err;
}

/* --- shared receive queues ----------------------------------------------- */

struct ibv_srq *ibv_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *init)
{
	struct fab_context *context = to_context(pd->context);
	struct fab_srq *srq;

	if (init->attr.max_wr == 0 || init->attr.max_wr > FAB_WR_MAX ||
	    init->attr.max_sge > FAB_SGE_MAX) {
		errno = EINVAL;
		return NULL;
	}
	srq = calloc(1, sizeof(*srq));
	if (!srq)
		return NULL;
	srq->ibv.context = pd->context;
	srq->ibv.srq_context = init->srq_context;
	srq->ibv.pd = pd;
	pthread_mutex_init(&srq->ibv.mutex, NULL);
	pthread_cond_init(&srq->ibv.cond, NULL);
	receive_queue_init(&srq->queue, init->attr.max_wr, init->attr.max_sge);
	pthread_mutex_lock(&context->lock);
	srq->ibv.handle = context_handle(context);
	to_pd(pd)->refs++;
	pthread_mutex_unlock(&context->lock);
	return &srq->ibv;
}

int ibv_modify_srq(struct ibv_srq *ibv, struct ibv_srq_attr *attr, int mask)
{
	struct fab_context *context = to_context(ibv->context);
	struct fab_srq *srq = to_srq(ibv);
	int err = 0;

	if (mask & ~(IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT))
		return EINVAL;
	if (mask & IBV_SRQ_MAX_WR) /* SRQ_RESIZE is not among the capabilities */
		return EOPNOTSUPP;
	pthread_mutex_lock(&context->lock);
	if (attr->srq_limit > srq->queue.n_max)
		err = EINVAL;
	else if (mask & IBV_SRQ_LIMIT)
		srq->limit = attr->srq_limit;
	pthread_mutex_unlock(&context->lock);
	return err;
}

int ibv_query_srq(struct ibv_srq *ibv, struct ibv_srq_attr *attr)
{
	struct fab_context *context = to_context(ibv->context);
	struct fab_srq *srq = to_srq(ibv);

	pthread_mutex_lock(&context->lock);
	attr->max_wr = srq->queue.n_max;
	attr->max_sge = srq->queue.max_sge;
	attr->srq_limit = srq->limit;
	pthread_mutex_unlock(&context->lock);
	return 0;
}

int ibv_destroy_srq(struct ibv_srq *ibv)
{
	struct fab_context *context = to_context(ibv->context);
	struct fab_srq *srq = to_srq(ibv);
	bool busy;

	pthread_mutex_lock(&context->lock);
	busy = srq->refs;
	if (!busy) {
		to_pd(ibv->pd)->refs--;
		context->n_objects--;
		event_queue_forget(&context->async, ibv);
	}
	pthread_mutex_unlock(&context->lock);
	if (busy)
		return EBUSY;
	pthread_mutex_lock(&ibv->mutex);
	while (ibv->events_completed != __atomic_load_n(&srq->n_async_events, __ATOMIC_RELAXED))
		pthread_cond_wait(&ibv->cond, &ibv->mutex);
	pthread_mutex_unlock(&ibv->mutex);
	receive_queue_fini(&srq->queue);
	free(srq);
	return 0;
}
