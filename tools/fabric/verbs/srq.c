/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared receive queues: create, modify, destroy. */
#include <errno.h>
#include <stdlib.h>

#include "tools/fabric/verbs/context.h"
#include "tools/fabric/verbs/receive_queue.h"
#include "tools/fabric/verbs/srq.h"
#include "tools/fabric/verbs/xrc.h"

#define OF_XRC                                                                    \
	(IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_XRCD | \
	 IBV_SRQ_INIT_ATTR_CQ)

/* @xrcd, @cq: for XRC; otherwise NULL. */
static struct ibv_srq *create_srq(struct ibv_pd *pd, const struct ibv_srq_init_attr *init,
				  struct ibv_xrcd *xrcd, struct ibv_cq *cq)
{
	struct fab_context *context = to_context(pd->context);
	struct fab_srq *srq;

	if (IS_FOREIGN(xrcd, pd->context) || IS_FOREIGN(cq, pd->context)) {
		errno = ENOENT;
		return NULL;
	}
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
	list_init(&srq->xrc);
	pthread_mutex_lock(&context->lock);
	if (xrcd)
		xrc_add(srq, xrcd, cq);
	srq->ibv.handle = context_handle(context);
	to_pd(pd)->refs++;
	pthread_mutex_unlock(&context->lock);
	return &srq->ibv;
}

struct ibv_srq *ibv_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *init)
{
	return create_srq(pd, init, NULL, NULL);
}

struct ibv_srq *srq_create_ex(struct ibv_context *verbs, struct ibv_srq_init_attr_ex *attr)
{
	struct ibv_srq_init_attr init = { attr->srq_context, attr->attr };

	if (attr->comp_mask != OF_XRC || attr->srq_type != IBV_SRQT_XRC) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	if (IS_FOREIGN(attr->pd, verbs)) {
		errno = ENOENT;
		return NULL;
	}
	return create_srq(attr->pd, &init, attr->xrcd, attr->cq);
}

int ibv_modify_srq(struct ibv_srq *ibv, struct ibv_srq_attr *attr, int mask)
{
	struct fab_context *context = to_context(ibv->context);
	struct fab_srq *srq = to_srq(ibv);
	uint32_t n_max, limit;
	int err = 0;

	if (mask & ~(IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT))
		return command_return(EINVAL);
	pthread_mutex_lock(&context->lock);
	n_max = mask & IBV_SRQ_MAX_WR ? attr->max_wr : srq->queue.n_max;
	limit = mask & IBV_SRQ_LIMIT ? attr->srq_limit : srq->limit;
	if (n_max == 0 || n_max > FAB_WR_MAX || limit > n_max)
		err = EINVAL;
	if (!err && mask & IBV_SRQ_MAX_WR)
		err = receive_queue_resize(&srq->queue, n_max);
	if (!err)
		srq->limit = limit;
	pthread_mutex_unlock(&context->lock);
	return command_return(err);
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
		xrc_remove(srq);
		to_pd(ibv->pd)->refs--;
		context->n_objects--;
		event_queue_forget(&context->async, ibv);
	}
	pthread_mutex_unlock(&context->lock);
	if (busy)
		return command_return(EBUSY);
	pthread_mutex_lock(&ibv->mutex);
	while (ibv->events_completed != srq->n_async_events)
		pthread_cond_wait(&ibv->cond, &ibv->mutex);
	pthread_mutex_unlock(&ibv->mutex);
	receive_queue_fini(&srq->queue);
	free(srq);
	return 0;
}
