/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Posting receives, to queue pairs and to shared queues.
 */
#include <errno.h>

#include "tools/fabric/verbs/completion.h"
#include "tools/fabric/verbs/qp.h"
#include "tools/fabric/verbs/receive_queue.h"

int post_recv(struct ibv_qp *ibv, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	struct fab_context *context = to_context(ibv->context);
	struct fab_qp *qp = to_qp(ibv);
	int err = 0;

	pthread_mutex_lock(&context->lock);
	if (ibv->srq || service_of(qp) == FAB_SERVICE_XRC || qp->attr.qp_state == IBV_QPS_RESET)
		err = EINVAL;
	for (; !err && wr; wr = err ? wr : wr->next)
		err = receive_queue_append(&qp->rq, wr);
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
	for (; !err && wr; wr = err ? wr : wr->next)
		err = receive_queue_append(&to_srq(ibv)->queue, wr);
	if (err)
		*bad = wr;
	pthread_mutex_unlock(&context->lock);
	return err;
}
