/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rdma_migrate_id(): an id moves to another channel and takes the events along that nobody has
 * taken yet.
 */
#include <errno.h>

#include "lib/api.h"
#include "lib/engine.h"

static void set_channel(struct id *id, struct channel *channel)
{
	channel_get(channel);
	channel_put(id->channel);
	id->channel = channel;
	id->pub.channel = &channel->pub;
}

/* Requests in the queue bring their ids along. With the engine's lock held no event can come in
 * between. */
static void move_events(struct id *id, struct channel *to)
{
	struct list events, *node, *after;
	struct event *event;

	list_init(&events);
	channel_withdraw(id->channel, id, &events);
	list_for_each_safe (node, after, &events) {
		event = container_of(node, struct event, link);
		list_remove(node);
		set_channel(event->subject, to);
		channel_post(to, event);
	}
	set_channel(id, to);
}

static int migrate(struct id *id, struct channel *to)
{
	engine_lock();
	move_events(id, to);
	engine_unlock();
	id_wait_acked(id);
	return 0;
}

int rdma_migrate_id(struct rdma_cm_id *id, struct rdma_event_channel *channel)
{
	if (!id)
		return api_return(-EINVAL);
	if (!channel)
		return api_return(-ENOSYS); /* synchronous ids are not here yet */
	return api_return(migrate(id_of(id), channel_of(channel)));
}
