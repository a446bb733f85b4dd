/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Takes events in the program's thread: the core of rdma_get_cm_event(), and of the calls of
 * synchronous ids.
 */
#ifndef LIB_SYNC_EVENT_H
#define LIB_SYNC_EVENT_H

#include "lib/event/channel.h"

/** event_of() - the event of the program's pointer. */
static inline struct event *event_of(struct rdma_cm_event *pub)
{
	return (struct event *)pub;
}

/**
 * event_take() - take the oldest event of a channel and apply its effect: see event.c
 * @channel:      waits for an event if its descriptor is blocking
 * @cancel_state: the program's, see api.h
 * @ret:          the event, for event_ack()
 *
 * The id of a synchronous listener's request is synchronous, too.
 *
 * Return: 0; as channel_take(); -errno if the id of a synchronous listener's request could not be
 * made, and the request was refused. For another listener the next event is taken instead.
 */
int event_take(struct channel *channel, int cancel_state, struct event **ret);

/** event_ack() - free an event and its private data, once acknowledged. */
void event_ack(struct event *event);

#endif
