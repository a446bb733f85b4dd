/* SPDX-License-Identifier: BSD-2-Clause */
/* Synchronous ids: see sync.h. Also rdma_get_request(), by which they get requests. */
#include "lib/sync/sync.h"

#include <errno.h>

#include "lib/sync/event.h"

void sync_drop_event(struct id *id)
{
	struct rdma_cm_event *event = id->pub.event;

	id->pub.event = NULL;
	if (event)
		event_ack(event_of(event));
}

/*
 * A positive status is the peer's reason. It maps to ECONNREFUSED for REJECTED, otherwise it is
 * used as an errno.
 */
static int event_outcome(const struct rdma_cm_event *event)
{
	if (!event->status)
		return 0;
	if (event->event == RDMA_CM_EVENT_REJECTED)
		return -ECONNREFUSED;
	return event->status < 0 ? event->status : -event->status;
}

int sync_complete(struct id *id, int cancel_state)
{
	struct event *event;
	int err;

	sync_drop_event(id);
	err = event_take(id->channel, cancel_state, &event);
	if (err)
		return err;
	id->pub.event = &event->pub;
	return event_outcome(&event->pub);
}

int sync_finish(struct id *id, bool had_event, int cancel_state)
{
	if (had_event || channel_is_blocking(id->channel))
		return sync_complete(id, cancel_state);
	sync_drop_event(id);
	return -EAGAIN;
}

/* --- requests ------------------------------------------------------------ */

/*
 * Also creates the queue pair of an endpoint's request. It works on a copy of the listener's
 * attributes, as creation modifies them.
 */
static int check_request(const struct id *listener, const struct rdma_cm_event *event)
{
	struct ibv_qp_init_attr attr;
	int err = event_outcome(event);

	if (!err && event->event != RDMA_CM_EVENT_CONNECT_REQUEST)
		err = -EINVAL;
	if (err || !listener->request_qp)
		return err;
	attr = *listener->request_qp;
	return rdma_create_qp(event->id, listener->pub.pd, &attr) ? -errno : 0;
}

static int take_request(struct id *listener, int cancel_state, struct rdma_cm_id **ret)
{
	struct event *event;
	int err;

	if (!id_is_sync(listener))
		return -EINVAL;
	sync_drop_event(listener);
	err = event_take(listener->channel, cancel_state, &event);
	if (err)
		return err;
	err = check_request(listener, &event->pub);
	if (err) {
		listener->pub.event = &event->pub;
		return err;
	}
	event->pub.id->event = &event->pub;
	*ret = event->pub.id;
	return 0;
}

int rdma_get_request(struct rdma_cm_id *listen, struct rdma_cm_id **id)
{
	int cancel_state, err = id ? id_check(listen) : -EINVAL;

	if (err)
		return api_result(err);
	cancel_state = api_enter();
	err = take_request(id_of(listen), cancel_state, id);
	api_leave(cancel_state);
	return api_result(err);
}
