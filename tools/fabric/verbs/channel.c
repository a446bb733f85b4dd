/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Completion channels and the asynchronous events of a context, which programs wait for. Destroying
 * an object waits until the program has acknowledged all its events.
 */
#include <errno.h>
#include <stdlib.h>

#include "tools/fabric/verbs/context.h"

struct ibv_comp_channel *ibv_create_comp_channel(struct ibv_context *verbs)
{
	struct fab_context *context = to_context(verbs);
	struct fab_channel *channel = calloc(1, sizeof(*channel));
	int err;

	if (!channel)
		return NULL;
	err = event_queue_init(&channel->events);
	if (err) {
		free(channel);
		errno = -err;
		return NULL;
	}
	channel->ibv.context = verbs;
	channel->ibv.fd = channel->events.fd;
	pthread_mutex_lock(&context->lock);
	context->n_objects++;
	pthread_mutex_unlock(&context->lock);
	return &channel->ibv;
}

int ibv_destroy_comp_channel(struct ibv_comp_channel *ibv)
{
	struct fab_channel *channel = container_of(ibv, struct fab_channel, ibv);
	struct fab_context *context = to_context(ibv->context);
	int err = 0;

	pthread_mutex_lock(&context->lock);
	if (ibv->refcnt)
		err = EBUSY;
	else
		context->n_objects--;
	pthread_mutex_unlock(&context->lock);
	if (err)
		return err;
	event_queue_fini(&channel->events);
	free(channel);
	return 0;
}

int ibv_get_cq_event(struct ibv_comp_channel *ibv, struct ibv_cq **ret_cq, void **ret_context)
{
	struct fab_channel *channel = container_of(ibv, struct fab_channel, ibv);
	struct ibv_async_event event;
	int err = event_queue_take(&channel->events, &event);

	if (err) {
		errno = -err;
		return -1;
	}
	*ret_cq = event.element.cq;
	*ret_context = event.element.cq->cq_context;
	return 0;
}

void ibv_ack_cq_events(struct ibv_cq *cq, unsigned int nevents)
{
	pthread_mutex_lock(&cq->mutex);
	cq->comp_events_completed += nevents;
	pthread_cond_broadcast(&cq->cond);
	pthread_mutex_unlock(&cq->mutex);
}

/* Counts of an object's events: read by the program, and acknowledged. */
struct tally {
	unsigned int *taken;
	uint32_t *acked;
	pthread_mutex_t *mutex;
	pthread_cond_t *cond;
};

static struct tally tally_of_cq(struct ibv_cq *cq)
{
	return (struct tally){ &to_cq(cq)->n_async_events, &cq->async_events_completed, &cq->mutex,
			       &cq->cond };
}

static struct tally tally_of_qp(struct ibv_qp *qp)
{
	return (struct tally){ &to_qp(qp)->n_async_events, &qp->events_completed, &qp->mutex,
			       &qp->cond };
}

static struct tally tally_of_srq(struct ibv_srq *srq)
{
	return (struct tally){ &to_srq(srq)->n_async_events, &srq->events_completed, &srq->mutex,
			       &srq->cond };
}

/* Return: false for an event of a port or of the whole device. */
static bool find_tally(const struct ibv_async_event *event, struct tally *ret)
{
	switch ((int)event->event_type) { /* newer libibverbs have more */
	case IBV_EVENT_CQ_ERR:
		*ret = tally_of_cq(event->element.cq);
		return true;
	case IBV_EVENT_QP_FATAL:
	case IBV_EVENT_QP_REQ_ERR:
	case IBV_EVENT_QP_ACCESS_ERR:
	case IBV_EVENT_COMM_EST:
	case IBV_EVENT_SQ_DRAINED:
	case IBV_EVENT_PATH_MIG:
	case IBV_EVENT_PATH_MIG_ERR:
	case IBV_EVENT_QP_LAST_WQE_REACHED:
		*ret = tally_of_qp(event->element.qp);
		return true;
	case IBV_EVENT_SRQ_ERR:
	case IBV_EVENT_SRQ_LIMIT_REACHED:
		*ret = tally_of_srq(event->element.srq);
		return true;
	}
	return false;
}

void context_report_event(struct fab_context *context, const struct ibv_async_event *event)
{
	struct tally tally = { .taken = NULL };

	find_tally(event, &tally);
	/* Out of memory: the event is lost, as in a device whose event queue is full. */
	event_queue_post(&context->async, event, tally.taken);
}

int ibv_get_async_event(struct ibv_context *verbs, struct ibv_async_event *ret)
{
	int err = event_queue_take(&to_context(verbs)->async, ret);

	if (err) {
		errno = -err;
		return -1;
	}
	return 0;
}

void ibv_ack_async_event(struct ibv_async_event *event)
{
	struct tally tally;

	if (!find_tally(event, &tally))
		return;
	pthread_mutex_lock(tally.mutex);
	++*tally.acked;
	pthread_cond_broadcast(tally.cond);
	pthread_mutex_unlock(tally.mutex);
}
