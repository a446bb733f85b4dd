/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The route of an id: see id_route.h. rdma_resolve_route().
 */
#include "lib/conn/id_route.h"

#include <errno.h>
#include <stdlib.h>

#include "lib/api.h"
#include "lib/conn/qkey.h"
#include "lib/diag/failure.h"
#include "lib/engine/engine.h"
#include "lib/id/claims.h"
#include "lib/path/ibacm.h"
#include "lib/sync/sync.h"

int route_publish(struct id *id)
{
	struct rdma_route *route = &id->pub.route;
	const int n = id->alternate ? 2 : 1;
	struct ibv_sa_path_rec *rec = realloc(route->path_rec, (size_t)n * sizeof(*rec));

	if (!rec)
		return -ENOMEM;
	path_to_record(&id->path, rec);
	if (id->alternate)
		path_to_record(id->alternate, rec + 1);
	route->path_rec = rec;
	route->num_paths = n;
	return 0;
}

static int route_taken(struct event *event)
{
	int err = route_publish(event->subject);

	if (err)
		id_event_spoil(event, RDMA_CM_EVENT_ROUTE_ERROR, err);
	return 0;
}

static void announce_route(struct id *id)
{
	id->state = ID_ROUTE_RESOLVED;
	id->has_own_route = true;
	id->peer_hw.is_known = false;
	id_notify_taken(id, RDMA_CM_EVENT_ROUTE_RESOLVED, 0, route_taken);
}

void route_set(struct id *id, const struct sa_path *record, uint16_t pkey_index)
{
	path_take_record(&id->path, record);
	id->path.pkey_index = pkey_index;
	announce_route(id);
}

static void route_failed(struct id *id, int err)
{
	id->state = ID_ADDR_RESOLVED;
	failure_of_path(id, err);
	id_notify(id, RDMA_CM_EVENT_ROUTE_ERROR, err);
}

/* Without a broadcast group the Q_Key is that of the other port spaces. */
static bool qkey_answered(struct subnet_ask *ask, int err, const struct sa_msg *answer)
{
	struct id *id = container_of(ask, struct id, route_ask);

	if (id->state != ID_ROUTE_QUERY)
		return false;
	if (err && err != -EINVAL) {
		route_failed(id, err);
		return false;
	}
	if (!err)
		id->qkey = answer->member.qkey;
	announce_route(id);
	return false;
}

static bool route_answered(struct subnet_ask *ask, int err, const struct sa_msg *answer)
{
	struct id *id = container_of(ask, struct id, route_ask);

	if (id->state != ID_ROUTE_QUERY)
		return false;
	if (err) {
		route_failed(id, err);
		return false;
	}
	path_take_record(&id->path, &answer->path);
	if (!qkey_question(id, &ask->msg)) {
		announce_route(id);
		return false;
	}
	ask->done = qkey_answered;
	return true;
}

/* As in stock, a path from ibacm takes precedence; it is ignored if it cannot be used. */
static bool take_path_of_ibacm(struct id *id)
{
	struct rdma_addr *addr = &id->pub.route.addr;
	struct ibacm_question question = { .src = &addr->src_addr, .dst = &addr->dst_addr };
	struct ibacm_answer answer;

	if (!engine_id_is(id, ID_ADDR_RESOLVED))
		return false;
	if (ibacm_ask(ibacm_of_host(), &question, &answer) || !answer.n_paths)
		return false;
	return rdma_set_option(&id->pub, RDMA_OPTION_IB, RDMA_OPTION_IB_PATH, answer.path,
			       answer.n_paths * sizeof(answer.path[0])) == 0;
}

/* The ACK timeout is twice the packet life time; 0 leaves that to the path. */
static int complete_path(struct id *id)
{
	const struct id_options *option = &id->option;
	const bool has_timeout = option->has_ack_timeout && option->ack_timeout;
	const struct path_query query = {
		.claim = &id->claim,
		.service_id = claims_service_id(&id->claim.peer, id->claim.ps),
		.has_tos = option->has_tos,
		.tos = option->tos,
		.has_packet_life_time = has_timeout,
		.packet_life_time = has_timeout ? (uint8_t)(option->ack_timeout - 1) : 0,
	};

	return id->path.loopback ? -ENODEV : path_complete(&id->path, &query, &id->route_ask.msg);
}

static int resolve_route(struct id *id, int timeout_ms)
{
	struct portd_record question = { .type = PORTD_NONE };
	struct engine *engine;
	int err = -EINVAL;

	if (!timeout_ms)
		return -EINVAL;
	if (take_path_of_ibacm(id))
		return 0;
	engine = engine_lock();
	if (id->state != ID_ADDR_RESOLVED)
		goto out;
	err = complete_path(id);
	if (!err) {
		announce_route(id);
	} else if (err == -EINPROGRESS) {
		err = 0;
		id->route_ask.timeout_ms = (unsigned int)timeout_ms;
		id->route_ask.done = route_answered;
		id->state = ID_ROUTE_QUERY;
		subnet_ask(engine, &id->route_ask, id->path.port, &question);
	} else {
		failure_of_path(id, err);
	}
out:
	engine_unlock();
	subnet_send(&question);
	return err;
}

int rdma_resolve_route(struct rdma_cm_id *id, int timeout_ms)
{
	return sync_return(id, resolve_route(id_of(id), timeout_ms));
}
