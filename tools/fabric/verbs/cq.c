/* SPDX-License-Identifier: BSD-2-Clause */
/* Completion queues: a ring of completions as returned by ibv_poll_cq(). */
#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "tools/fabric/verbs/completion.h"
#include "tools/fabric/verbs/context.h"
#include "tools/fabric/verbs/held.h"
#include "tools/fabric/wire/quirks.h"

static void cq_free(struct fab_cq *cq)
{
	free(cq->ring);
	free(cq);
}

static struct fab_cq *cq_new(struct ibv_context *verbs, uint32_t cqe, void *cq_context,
			     struct ibv_comp_channel *channel)
{
	struct fab_cq *cq = calloc(1, sizeof(*cq));

	if (!cq)
		return NULL;
	cq->ring = calloc(cqe, sizeof(*cq->ring));
	if (!cq->ring) {
		cq_free(cq);
		return NULL;
	}
	cq->n = cqe;
	cq->ex.context = verbs;
	cq->ex.channel = channel;
	cq->ex.cq_context = cq_context;
	cq->ex.cqe = (int)cqe;
	pthread_mutex_init(&cq->ex.mutex, NULL);
	pthread_cond_init(&cq->ex.cond, NULL);
	pthread_mutex_init(&cq->poll_lock, NULL);
	return cq;
}

struct ibv_cq *ibv_create_cq(struct ibv_context *verbs, int cqe, void *cq_context,
			     struct ibv_comp_channel *channel, int comp_vector)
{
	struct fab_context *context = to_context(verbs);
	struct fab_cq *cq;

	if (cqe < 1 || cqe > FAB_CQE_MAX || comp_vector < 0 ||
	    comp_vector >= verbs->num_comp_vectors) {
		errno = EINVAL;
		return NULL;
	}
	if (IS_FOREIGN(channel, verbs)) { /* the kernel knows it by its descriptor */
		errno = EBADF;
		return NULL;
	}
	cq = cq_new(verbs, (uint32_t)cqe, cq_context, channel);
	if (!cq)
		return NULL;
	pthread_mutex_lock(&context->lock);
	cq->ex.handle = context_handle(context);
	if (channel)
		channel->refcnt++;
	pthread_mutex_unlock(&context->lock);
	return from_cq(cq);
}

/* IBTA vol. 1, 11.2.6.4: all events of a queue must be acknowledged before it is destroyed. */
static void wait_for_acks(struct fab_cq *cq)
{
	pthread_mutex_lock(&cq->ex.mutex);
	while (cq->ex.comp_events_completed != cq->n_comp_events ||
	       cq->ex.async_events_completed != cq->n_async_events)
		pthread_cond_wait(&cq->ex.cond, &cq->ex.mutex);
	pthread_mutex_unlock(&cq->ex.mutex);
}

int ibv_destroy_cq(struct ibv_cq *ibv)
{
	struct fab_context *context = to_context(ibv->context);
	struct fab_cq *cq = to_cq(ibv);

	pthread_mutex_lock(&context->lock);
	if (cq->refs) {
		pthread_mutex_unlock(&context->lock);
		return command_return(EBUSY);
	}
	context->n_objects--;
	if (ibv->channel) {
		event_queue_forget(&container_of(ibv->channel, struct fab_channel, ibv)->events,
				   cq);
		ibv->channel->refcnt--;
	}
	event_queue_forget(&context->async, cq);
	pthread_mutex_unlock(&context->lock);
	wait_for_acks(cq);
	cq_free(cq);
	return 0;
}

int ibv_resize_cq(struct ibv_cq *ibv, int cqe)
{
	struct fab_context *context = to_context(ibv->context);
	struct fab_cq *bigger, *cq = to_cq(ibv);
	uint32_t i;

	if (cqe < 1 || cqe > FAB_CQE_MAX)
		return command_return(EINVAL);
	bigger = cq_new(ibv->context, (uint32_t)cqe, NULL, NULL);
	if (!bigger)
		return command_return(ENOMEM);
	pthread_mutex_lock(&context->lock);
	if (cq->count > (uint32_t)cqe) {
		pthread_mutex_unlock(&context->lock);
		cq_free(bigger);
		return command_return(EINVAL);
	}
	for (i = 0; i < cq->count; i++)
		bigger->ring[i] = cq->ring[(cq->head + i) % cq->n];
	free(cq->ring);
	cq->ring = bigger->ring;
	cq->head = 0;
	cq->n = (uint32_t)cqe;
	ibv->cqe = cqe;
	pthread_mutex_unlock(&context->lock);
	free(bigger);
	return 0;
}

/* --- filling ------------------------------------------------------------- */

static void report_overrun(struct fab_cq *cq)
{
	struct ibv_async_event event = { .event_type = IBV_EVENT_CQ_ERR };

	if (cq->has_overrun)
		return;
	cq->has_overrun = true;
	event.element.cq = from_cq(cq);
	context_report_event(to_context(cq->ex.context), &event);
}

/* A completion of an armed queue causes an event. */
static void notify_channel(struct fab_cq *cq, struct fab_completion *of)
{
	struct ibv_async_event event = { .element = { .cq = from_cq(cq) } };

	if (cq->arm == FAB_ARM_NONE || (cq->arm == FAB_ARM_SOLICITED && !of->is_solicited) ||
	    !cq->ex.channel)
		return;
	cq->arm = FAB_ARM_NONE;
	of->is_reported = true;
	event_queue_post(&container_of(cq->ex.channel, struct fab_channel, ibv)->events, &event,
			 &cq->n_comp_events);
}

void cq_push(struct fab_cq *cq, const struct ibv_wc *wc, bool solicited)
{
	struct fab_completion *next = &cq->ring[(cq->head + cq->count) % cq->n];

	if (cq->is_last_held)
		held_show(to_context(cq->ex.context));
	if (cq->count == cq->n) {
		report_overrun(cq);
		return;
	}
	next->wc = *wc;
	/* Errors count as solicited: IBTA vol. 1, 11.4.2.2. */
	next->is_solicited = solicited || wc->status != IBV_WC_SUCCESS;
	if (cq->wc_flags & IBV_WC_EX_WITH_COMPLETION_TIMESTAMP)
		next->clock_ns = clock_ns();
	if (cq->wc_flags & IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK)
		next->wall_clock_ns = clock_ns_of(CLOCK_REALTIME);
	next->is_reported = false;
	cq->count++;
	notify_channel(cq, next);
}

void cq_arm(struct fab_cq *cq, bool solicited_only)
{
	struct fab_context *context = to_context(cq->ex.context);
	uint32_t i;

	if (!solicited_only)
		cq->arm = FAB_ARM_ANY;
	else if (cq->arm == FAB_ARM_NONE)
		cq->arm = FAB_ARM_SOLICITED;
	if (fab_has_quirk(context->device->page, FAB_QUIRK_STRICT_NOTIFY))
		return;
	for (i = 0; i < cq->count && cq->arm != FAB_ARM_NONE; i++) {
		struct fab_completion *waiting = &cq->ring[(cq->head + i) % cq->n];

		if (!waiting->is_reported)
			notify_channel(cq, waiting);
	}
}

void cq_forget(struct fab_cq *cq, uint32_t qpn)
{
	uint32_t i, n = 0;

	for (i = 0; i < cq->count; i++) {
		uint32_t from = (cq->head + i) % cq->n;
		uint32_t to = (cq->head + n) % cq->n;

		if (cq->ring[from].wc.qp_num == qpn)
			continue;
		cq->ring[to] = cq->ring[from];
		n++;
	}
	cq->count = n;
}
