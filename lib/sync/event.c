/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Channels, and taking events from them: rdma_create_event_channel(), rdma_destroy_event_channel(),
 * rdma_get_cm_event(), rdma_ack_cm_event().
 *
 * Each event has a function that applies its effect to the id. It is called here, in the program's
 * thread, in the order of the queue.
 */
#include "lib/sync/event.h"

#include <errno.h>

#include "lib/api.h"
#include "lib/device/device.h"
#include "lib/id/id.h"

/* After CONNECT_ERROR these two events are redundant. */
static bool is_redundant(const struct event *event)
{
	return event->subject->connect_error && (event->pub.event == RDMA_CM_EVENT_REJECTED ||
						 event->pub.event == RDMA_CM_EVENT_DISCONNECTED);
}

void event_ack(struct event *event)
{
	id_credit(event->owner, event);
}

int event_take(struct channel *channel, int cancel_state, struct event **ret)
{
	struct event *event;
	int err;

	do {
		err = channel_take(channel, cancel_state, &event);
		if (err)
			return err;
		if (is_redundant(event)) {
			event_ack(event);
			err = EVENT_DROPPED;
		} else if (event->taken) {
			err = event->taken(event);
		}
	} while (err == EVENT_DROPPED);
	if (!err)
		*ret = event;
	return err;
}

struct rdma_event_channel *rdma_create_event_channel(void)
{
	struct channel *channel;
	int err = api_return(device_list_check());

	if (!err)
		err = api_return(channel_new(&channel));
	return err ? NULL : &channel->pub;
}

void rdma_destroy_event_channel(struct rdma_event_channel *channel)
{
	int cancel_state = api_enter();

	channel_close(channel_of(channel));
	api_leave(cancel_state);
}

int rdma_get_cm_event(struct rdma_event_channel *channel, struct rdma_cm_event **event)
{
	struct event *taken;
	int cancel_state, err;

	if (!channel || !event)
		return api_return(-EINVAL);
	cancel_state = api_enter();
	err = event_take(channel_of(channel), cancel_state, &taken);
	api_leave(cancel_state);
	if (!err)
		*event = &taken->pub;
	return api_result(err);
}

static int ack_cm_event(struct rdma_cm_event *event)
{
	if (!event)
		return -EINVAL;
	if (!id_check(&event_of(event)->owner->pub))
		event_ack(event_of(event));
	return 0;
}

int rdma_ack_cm_event(struct rdma_cm_event *event)
{
	return api_return(ack_cm_event(event));
}
