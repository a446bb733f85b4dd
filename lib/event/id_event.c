/* SPDX-License-Identifier: BSD-2-Clause */
/* Events of ids: allocated, posted, charged to their owners, freed. */
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>

#include "base/pool.h"
#include "lib/diag/lock_order.h"
#include "lib/diag/warning.h"
#include "lib/group/group.h"
#include "lib/id/id.h"

/* --- memory -------------------------------------------------------------- */

static struct pool long_events = POOL_OF(sizeof(struct event));

/* Without private data, a thousand events take forty pages instead of a hundred. */
static struct pool brief_events = POOL_OF(offsetof(struct event, private_data));

void id_events_after_fork(void)
{
	pool_after_fork(&long_events);
	pool_after_fork(&brief_events);
}

static struct event *event_new(void)
{
	struct event *event = pool_take(&long_events);

	if (event)
		event->is_long = true;
	return event;
}

static void event_free(struct event *event)
{
	if (event)
		pool_give(event->is_long ? &long_events : &brief_events, event);
}

int id_make_spare(struct id *id)
{
	id->spare = event_new();
	return id->spare ? 0 : -ENOMEM;
}

void id_free_spare(struct id *id)
{
	event_free(id->spare);
}

/* --- charging their owners ----------------------------------------------- */

void id_charge(const struct event *event)
{
	__atomic_add_fetch(&event->owner->n_taken, 1, __ATOMIC_RELAXED);
	if (event->group)
		__atomic_add_fetch(&event->group->n_taken, 1, __ATOMIC_RELAXED);
}

static bool is_all_acked(const unsigned int *n_taken, unsigned int n_acked)
{
	return n_acked == __atomic_load_n(n_taken, __ATOMIC_RELAXED);
}

/* Keeps the event as the id's spare if it has none. Return: NULL, or the event, to be freed. */
static struct event *keep_spare(struct id *id, struct event *event)
{
	if (id->spare || !event->is_long)
		return event;
	id->spare = event;
	return NULL;
}

void id_credit(struct id *id, struct event *event)
{
	struct group *group = event->group;
	bool done;

	lock_take(&id->lock, LOCK_ID);
	event = keep_spare(id, event);
	done = is_all_acked(&id->n_taken, ++id->n_acked);
	if (group && is_all_acked(&group->n_taken, ++group->n_acked))
		done = true;
	if (done)
		pthread_cond_broadcast(&id->all_acked);
	lock_give(&id->lock, LOCK_ID);
	event_free(event);
}

void id_wait_acked(struct id *id)
{
	lock_take(&id->lock, LOCK_ID);
	while (!is_all_acked(&id->n_taken, id->n_acked))
		pthread_cond_wait(&id->all_acked, &id->lock);
	lock_give(&id->lock, LOCK_ID);
}

void id_wait_group_acked(struct id *id, const struct group *group)
{
	lock_take(&id->lock, LOCK_ID);
	while (!is_all_acked(&group->n_taken, group->n_acked))
		pthread_cond_wait(&id->all_acked, &id->lock);
	lock_give(&id->lock, LOCK_ID);
}

/*
 * The event for use when out of memory, without which the program would wait forever. One per id is
 * enough: it comes back when it is acknowledged.
 */
static struct event *take_spare(struct id *id)
{
	struct event *event;

	lock_take(&id->lock, LOCK_ID);
	event = id->spare;
	id->spare = NULL;
	lock_give(&id->lock, LOCK_ID);
	if (event)
		*event = (struct event){ .is_long = true };
	return event;
}

void id_event_free(struct event *event)
{
	struct id *owner;

	if (!event)
		return;
	owner = event->owner;
	lock_take(&owner->lock, LOCK_ID);
	event = keep_spare(owner, event);
	lock_give(&owner->lock, LOCK_ID);
	event_free(event);
}

static void fill_event(struct event *event, struct id *id, enum rdma_cm_event_type type, int status)
{
	event->owner = id;
	event->subject = id;
	event->pub.id = &id->pub;
	event->pub.event = type;
	event->pub.status = status;
}

/* @event: new, or NULL if out of memory. */
static struct event *complete_event(struct event *event, struct id *id,
				    enum rdma_cm_event_type type, int status)
{
	if (!event)
		event = take_spare(id);
	if (!event) {
		warning_of_event(type);
		return NULL;
	}
	fill_event(event, id, type, status);
	return event;
}

struct event *id_event(struct id *id, enum rdma_cm_event_type type, int status)
{
	return complete_event(event_new(), id, type, status);
}

struct event *id_user_event(struct id *id, int status, uint64_t arg)
{
	struct event *event = pool_take(&brief_events);

	if (!event)
		return NULL;
	fill_event(event, id, RDMA_CM_EVENT_USER, status);
	event->pub.param.arg = arg;
	return event;
}

void id_post(struct event *event)
{
	channel_post(event->owner->channel, event);
}

void id_notify_taken(struct id *id, enum rdma_cm_event_type type, int status,
		     int (*taken)(struct event *event))
{
	struct event *event = complete_event(pool_take(&brief_events), id, type, status);

	if (!event)
		return;
	event->taken = taken;
	id_post(event);
}

void id_notify(struct id *id, enum rdma_cm_event_type type, int status)
{
	id_notify_taken(id, type, status, NULL);
}

void id_event_spoil(struct event *event, enum rdma_cm_event_type type, int err)
{
	event->pub.event = type;
	event->pub.status = err > 0 ? err : -1;
	errno = abs(err);
}

/* Destroys the ids of requests that were not taken, which refuses them. */
void id_drop_events(struct list *events)
{
	struct event *event;

	list_for_each_entry_safe (event, events, link) {
		if (event->subject != event->owner)
			event->subject->destroy(event->subject);
		event_free(event);
	}
}
