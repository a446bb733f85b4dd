/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Channels and taking events from them: rdma_create_event_channel(),
 * rdma_destroy_event_channel(), rdma_get_cm_event(), rdma_ack_cm_event().
 *
 * What an event means for the id, as the program sees it, happens here, in the program's thread
 * and in the order of the queue: the id learns its device, its queue pair moves, the REP is
 * answered. Nothing of that would be safe in another thread.
 */
#include "lib/event.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/api.h"
#include "lib/device.h"
#include "lib/ece.h"
#include "lib/engine.h"
#include "lib/infiniband.h"
#include "lib/listen.h"
#include "lib/lock_order.h"
#include "lib/multicast.h"
#include "lib/qp.h"
#include "lib/roce.h"
#include "lib/sync.h"
#include "lib/warning.h"

/* An event turns bad while it is taken. @err: -errno, or a driver's own error, as it is. */
static void spoil(struct event *event, enum rdma_cm_event_type type, int err)
{
	event->pub.event = type;
	event->pub.status = err > 0 ? err : -1;
	errno = abs(err);
}

static void take_addr_resolved(struct event *event)
{
	int err = id_attach(event->subject);

	if (err)
		spoil(event, RDMA_CM_EVENT_ADDR_ERROR, err);
}

static int show_path(struct id *id)
{
	struct rdma_route *route = &id->pub.route;
	struct ibv_sa_path_rec *rec = realloc(route->path_rec, sizeof(*rec));

	if (!rec)
		return -ENOMEM;
	roce_path_record(id, rec);
	route->path_rec = rec;
	route->num_paths = 1;
	return 0;
}

static void take_route_resolved(struct event *event)
{
	int err = show_path(event->subject);

	if (err)
		spoil(event, RDMA_CM_EVENT_ROUTE_ERROR, err);
}

static void take_request(struct event *event)
{
	int err;

	listen_request_taken(event->owner);
	event->subject->remote_ece = event->ece;
	err = id_attach(event->subject);
	if (!err && event->subject->pub.qp_type != IBV_QPT_UD)
		err = show_path(event->subject);
	if (err)
		warning_of_new_id(err);
}

static int answer_rep(struct id *id)
{
	struct engine *engine;
	struct outbox box;
	int err = ece_agree(id);

	if (!err)
		err = qp_to_rts(id);
	if (err) {
		qp_to_error(id);
		return err;
	}
	outbox_init(&box);
	engine = engine_lock();
	err = id->conn ? engine_step(engine, &box, id->conn, CM_CALL_RTU, NULL) : -ENODEV;
	engine_unlock();
	outbox_flush(&box);
	if (err)
		qp_to_error(id);
	return err;
}

/* With a queue pair of ours the program learns of the REP when all is ready. */
static void take_response(struct event *event)
{
	struct id *id = event->subject;
	bool is_external;
	int err;

	id->remote_ece = event->ece;
	lock_take(&id->qp_lock, LOCK_QP);
	is_external = !id->pub.qp;
	err = is_external ? 0 : answer_rep(id);
	lock_give(&id->qp_lock, LOCK_QP);
	if (is_external)
		return;
	if (!err) {
		event->pub.event = RDMA_CM_EVENT_ESTABLISHED;
		return;
	}
	id->connect_error = true;
	spoil(event, RDMA_CM_EVENT_CONNECT_ERROR, err);
}

static void take_rejected(struct event *event)
{
	struct id *id = event->subject;

	lock_take(&id->qp_lock, LOCK_QP);
	qp_to_error(id);
	lock_give(&id->qp_lock, LOCK_QP);
}

/* What cmportd remembers of the way there may be out of date. */
static void take_unreachable(struct event *event)
{
	infiniband_doubt(event->subject);
}

static void take_joined(struct event *event)
{
	int err = multicast_attach(event);

	if (err)
		spoil(event, RDMA_CM_EVENT_MULTICAST_ERROR, err);
}

static void (*const takers[])(struct event *event) = {
	[RDMA_CM_EVENT_ADDR_RESOLVED] = take_addr_resolved,
	[RDMA_CM_EVENT_ROUTE_RESOLVED] = take_route_resolved,
	[RDMA_CM_EVENT_UNREACHABLE] = take_unreachable,
	[RDMA_CM_EVENT_CONNECT_REQUEST] = take_request,
	[RDMA_CM_EVENT_CONNECT_RESPONSE] = take_response,
	[RDMA_CM_EVENT_REJECTED] = take_rejected,
	[RDMA_CM_EVENT_MULTICAST_JOIN] = take_joined,
};

/* After CONNECT_ERROR the program knows all that these could tell. */
static bool is_old_news(const struct event *event)
{
	return event->subject->connect_error && (event->pub.event == RDMA_CM_EVENT_REJECTED ||
						 event->pub.event == RDMA_CM_EVENT_DISCONNECTED);
}

void event_ack(struct event *event)
{
	id_credit(event->owner, event);
}

/* A request of a synchronous listener that cannot be shown is refused. */
static int settle_request(struct event *event)
{
	int err = id_is_sync(event->owner) ? sync_adopt(event->subject) : 0;

	if (err) {
		event->subject->destroy(event->subject);
		event_ack(event);
	}
	return err;
}

int event_take(struct channel *channel, int cancel_state, struct event **ret)
{
	struct event *event;
	int err;

	for (;;) {
		err = channel_take(channel, cancel_state, &event);
		if (err)
			return err;
		if (!is_old_news(event))
			break;
		event_ack(event);
	}
	if (event->pub.event < sizeof(takers) / sizeof(takers[0]) && takers[event->pub.event])
		takers[event->pub.event](event);
	if (event->pub.event == RDMA_CM_EVENT_CONNECT_REQUEST)
		err = settle_request(event);
	if (err)
		return err;
	*ret = event;
	return 0;
}

static int create_channel(struct channel **ret)
{
	int err = device_list_load();

	return err ? err : channel_new(ret);
}

struct rdma_event_channel *rdma_create_event_channel(void)
{
	struct channel *channel;

	return api_return(create_channel(&channel)) ? NULL : &channel->pub;
}

void rdma_destroy_event_channel(struct rdma_event_channel *channel)
{
	channel_close(channel_of(channel));
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

int rdma_ack_cm_event(struct rdma_cm_event *event)
{
	if (!event)
		return api_return(-EINVAL);
	event_ack(event_of(event));
	return 0;
}
