/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rdma_migrate_id() moves an id to another channel, with the events that were not taken yet.
 * Without a channel the id becomes synchronous, otherwise asynchronous.
 */
#include <errno.h>

#include "lib/api.h"
#include "lib/engine/engine.h"
#include "lib/sync/sync.h"

/*
 * Queued requests, and those in the backlog, take their ids along. With the engine's lock held no
 * event can come in between.
 */
static void move_events(struct id *id, struct channel *to)
{
	struct list events;
	struct event *event;

	list_init(&events);
	channel_withdraw(id->channel, id, NULL, &events);
	list_for_each_entry_safe (event, &events, link) {
		list_remove(&event->link);
		id_set_channel(event->subject, to);
		channel_post(to, event);
	}
	list_for_each_entry (event, &id->waiting, link)
		id_set_channel(event->subject, to);
	id_set_channel(id, to);
}

/* @becomes_sync: @to becomes the id's own channel */
static int migrate_to(struct id *id, struct channel *to, bool becomes_sync)
{
	struct channel *own = id_is_sync(id) ? id->channel : NULL;

	if (to == own)
		return -EINVAL; /* that channel is closed when the id leaves it */
	engine_lock();
	move_events(id, to);
	id_set_sync(id, becomes_sync);
	engine_unlock();
	sync_drop_event(id);
	id_wait_acked(id);
	if (own)
		channel_close(own);
	return 0;
}

static int migrate_id(struct id *id, struct channel *to)
{
	struct channel *own;
	int err;

	if (to && channel_is_inherited(to))
		return -EACCES;
	if (to)
		return migrate_to(id, to, false);
	if (id_is_sync(id))
		return -EINVAL;
	err = channel_new(&own);
	return err ? err : migrate_to(id, own, true);
}

int rdma_migrate_id(struct rdma_cm_id *id, struct rdma_event_channel *channel)
{
	return api_return(id_check(id) ?: migrate_id(id_of(id), channel_of(channel)));
}
