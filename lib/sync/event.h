/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Taking events in the program's thread: what rdma_get_cm_event() does, for synchronous ids, which
 * do it inside other calls.
 */
#ifndef LIB_SYNC_EVENT_H
#define LIB_SYNC_EVENT_H

#include "lib/event/channel.h"

/** event_of() - our event of the one that the program has. */
static inline struct event *event_of(struct rdma_cm_event *pub)
{
	return (struct event *)pub;
}

/**
 * event_take() - take the oldest event of a channel and apply its effect: see event.c
 * @channel:      waits for an event if its descriptor is blocking
 * @cancel_state: that of the program, see api.h
 * @ret:          to be given to event_ack()
 *
 * The request of a synchronous listener brings an id that is synchronous, too.
 *
 * Return: 0; as channel_take(); -EMFILE or -ENOMEM if the id of a request could not be made
 * synchronous, which refuses the request.
 */
int event_take(struct channel *channel, int cancel_state, struct event **ret);

/** event_ack() - free an event and its private data: the program has acknowledged it. */
void event_ack(struct event *event);

#endif
