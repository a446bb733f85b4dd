/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Listening: see listen.h. rdma_listen().
 */
#include "lib/conn/listen.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "lib/api.h"
#include "lib/conn/backlog.h"
#include "lib/conn/hotplug.h"
#include "lib/conn/qkey.h"
#include "lib/conn/request.h"
#include "lib/conn/resolve.h"
#include "lib/conn/id_route.h"
#include "lib/diag/warning.h"
#include "lib/id/claims.h"

/* --- finding the listener ------------------------------------------------ */

/* An endpoint without a queue pair type accepts requests of all types. */
static struct id *find_listener(struct engine *engine, const struct request *request)
{
	struct cm_service *service = cm_core_service(&engine->core, request->conn->service_id);
	enum ibv_qp_type type;
	struct id *id;

	for (; service; service = cm_core_next_service(service)) {
		id = container_of(service, struct id, service);
		type = id_transport(id);
		if (id->state == ID_LISTEN && (!(int)type || type == request->qp_type) &&
		    port_claim_accepts(&id->claim, &request->dst))
			return id;
	}
	return NULL;
}

/* --- the new id ---------------------------------------------------------- */

/* Return: 0 or -ENOMEM. */
static int set_paths(struct id *id, const struct request *request)
{
	id->path = request->path;
	if (!request->alternate.gid.verbs)
		return 0;
	id->alternate = malloc(sizeof(*id->alternate));
	if (!id->alternate)
		return -ENOMEM;
	*id->alternate = request->alternate;
	return 0;
}

static struct id *child_new(const struct id *listener, const struct request *request)
{
	struct id *id;

	if (id_new(listener->channel, listener->pub.ps, &id))
		return NULL;
	if (set_paths(id, request)) {
		id_free(id);
		return NULL;
	}
	port_get(id->path.port);
	id->destroy = listener->destroy;
	id->pub.context = listener->pub.context;
	id->pub.qp_type = listener->pub.qp_type;
	if (!(int)id->pub.qp_type)
		id->pub.qp_type = request->qp_type;
	id->option.give_up_ns = listener->option.give_up_ns;
	id->claim.local = request->dst;
	id->claim.peer = request->src;
	addr_store(&request->src, &id->pub.route.addr.dst_storage);
	id->hides_scope = true;
	if (request->src.sa.sa_family == AF_INET6)
		id->pub.route.addr.dst_sin6.sin6_scope_id = 0;
	id->state = ID_CONNECT;
	id->conn = request->conn;
	return id;
}

/* From now on a duplicate REQ is answered with MRA. */
static void post_request(struct engine *engine, struct outbox *box, struct event *event)
{
	struct cm_conn *conn = event->subject->conn;

	event->owner->n_requests++;
	id_post(event);
	if (conn->state == CM_REQ_RCVD)
		engine_step(engine, box, conn, CM_CALL_MRA, NULL);
}

static void make_room_in_backlog(struct id *listener)
{
	struct event *event;
	struct engine *engine;
	struct outbox box;
	struct list dropped;

	list_init(&dropped);
	outbox_init(&box);
	engine = engine_lock();
	listener->n_requests--;
	event = backlog_next(engine, &box, listener, &dropped);
	if (event)
		post_request(engine, &box, event);
	engine_unlock();
	outbox_flush(&box);
	backlog_free(&dropped);
}

/* The new id of a synchronous listener gets a channel of its own. */
static int make_own_channel(struct id *child)
{
	struct channel *own;
	int err = channel_new(&own);

	if (err)
		return err;
	engine_lock();
	id_set_channel(child, own);
	id_set_sync(child, true);
	engine_unlock();
	return 0;
}

/* Refuses a request whose id cannot be attached: programs use its device unchecked. */
int listen_request_taken(struct event *event)
{
	struct id *child = event->subject;
	bool is_sync = id_is_sync(event->owner);
	int err;

	make_room_in_backlog(event->owner);
	child->remote_ece = event->ece;
	err = id_attach(child);
	if (!err && child->pub.qp_type != IBV_QPT_UD)
		err = route_publish(child);
	if (!err)
		qkey_learn(child);
	if (err)
		warning_of_new_id(err);
	device_close_unused(true);
	if (!err && is_sync)
		err = make_own_channel(child);
	if (!err)
		return 0;
	child->destroy(child);
	id_credit(event->owner, event);
	return is_sync ? err : EVENT_DROPPED;
}

/* Return: CONNECT_REQUEST, of a new id; NULL when out of memory. */
static struct event *make_request_event(struct engine *engine, struct id *listener,
					const struct request *request)
{
	struct event *event = id_event(listener, RDMA_CM_EVENT_CONNECT_REQUEST, 0);
	struct id *child = event ? child_new(listener, request) : NULL;

	if (!child) {
		id_event_free(event);
		return NULL;
	}
	request->conn->owner = child;
	list_append(&engine->ids, &child->link);
	event->subject = child;
	event->pub.id = &child->pub;
	event->pub.listen_id = &listener->pub;
	event->taken = listen_request_taken;
	request_fill_event(request, event);
	return event;
}

/*
 * An unanswered REQ is retransmitted; by then there may be memory, or room in the queue. A SIDR_REQ
 * is refused, as the kernel does.
 */
static void deliver_request(struct engine *engine, struct outbox *box, struct id *listener,
			    const struct request *request)
{
	bool has_room = listener->n_requests < listener->backlog;
	bool is_lookup = request_is_lookup(request);
	struct event *event = NULL;

	if (has_room || (!is_lookup && backlog_has_room(listener)))
		event = make_request_event(engine, listener, request);
	if (!event)
		engine_step(engine, box, request->conn,
			    is_lookup ? CM_CALL_DESTROY : CM_CALL_FORGET, NULL);
	else if (has_room)
		post_request(engine, box, event);
	else
		backlog_add(event);
}

/*
 * The peer sends its packets to the remote GID of a REQ's path, which must be our GID. We send ours
 * to the local one, which must be the sender's; on InfiniBand only a router may know whether it is.
 */
static bool path_is_right(const struct request *request)
{
	const struct cm_req_path *primary = &request->msg->req.primary;
	const struct mad_gid *sender = &request->conn->path.dgid;
	const struct path *path = &request->path;

	return !memcmp(&path->gid.gid, &primary->remote_gid, sizeof(primary->remote_gid)) &&
	       (path_is_native(path) || !memcmp(sender, &primary->local_gid, sizeof(*sender))) &&
	       !path_check_pkey(path);
}

/* Sends REJ with a valid GID in the additional information. */
static void refuse_gid(struct engine *engine, struct outbox *box, struct cm_conn *conn,
		       uint16_t reason, const void *gid)
{
	struct cm_msg msg = { .rej.reason = reason, .rej.ari_bytes = sizeof(struct mad_gid) };
	struct cm_args args = { .msg = &msg };

	memcpy(msg.rej.ari, gid, sizeof(struct mad_gid));
	engine_step(engine, box, conn, CM_CALL_REJ, &args);
	engine_step(engine, box, conn, CM_CALL_DESTROY, NULL);
}

void listen_request(struct engine *engine, struct outbox *box, struct cm_conn *conn,
		    const struct cm_msg *msg)
{
	struct request request = request_of(conn, msg);
	struct id *listener;
	int err = request_locate(&request);

	if (!request_is_lookup(&request) && !path_is_right(&request)) {
		refuse_gid(engine, box, conn, CM_REJ_INVALID_GID, &conn->port->gid0);
		return;
	}
	if (!request_is_lookup(&request) &&
	    path_of_alternate(&request.path, &msg->req, &request.alternate)) {
		refuse_gid(engine, box, conn, CM_REJ_INVALID_ALT_GID, &msg->req.primary.remote_gid);
		return;
	}
	listener = err ? NULL : find_listener(engine, &request);
	/* A program may close the channel first: nobody would take the request. */
	if (listener && !channel_is_closed(listener->channel))
		deliver_request(engine, box, listener, &request);
	else
		engine_step(engine, box, conn, CM_CALL_DESTROY, NULL); /* REJ 28, or SIDR_REP 2 */
}

void listen_forget(struct id *child)
{
	struct engine *engine;
	struct outbox box;

	outbox_init(&box);
	engine = engine_lock();
	if (child->conn && child->conn->state == CM_MRA_REQ_SENT) {
		engine_step(engine, &box, child->conn, CM_CALL_FORGET, NULL);
		child->conn = NULL;
	}
	engine_unlock();
	outbox_flush(&box);
	child->destroy(child);
}

/* --- rdma_listen --------------------------------------------------------- */

void listen_stop(struct engine *engine, struct id *id)
{
	if (!id->serving)
		return;
	cm_core_unserve(&engine->core, &id->service);
	id->serving = false;
	if (addr_is_any(&id->claim.local))
		engine->n_wildcards--;
}

/* A resolution that failed has left it. */
static void drop_port(struct id *id)
{
	struct port *port;

	engine_lock();
	port = id->path.port;
	id->path.port = NULL;
	engine_unlock();
	if (port)
		port_put(port);
}

static int open_ports(struct id *id)
{
	struct port *port;
	int err;

	if (addr_is_any(&id->claim.local)) {
		drop_port(id);
		/* Devices and ports may come. */
		net_watch_interfaces();
		hotplug_watch_additions();
		err = device_open_all_ports();
		hotplug_settle();
		return err;
	}
	if (id->path.port)
		return 0;
	err = device_port_open(device_of(id->path.gid.verbs), id->path.gid.port_num, &port);
	if (!err)
		id->path.port = port;
	return err;
}

static int serve_requests(struct engine *engine, struct id *id, int backlog)
{
	unsigned int max = engine->limits.max_backlog, wanted = (unsigned int)backlog;
	int err;

	if (id->state != ID_ADDR_BOUND)
		return -EINVAL;
	err = cm_core_serve(&engine->core, &id->service,
			    claims_service_id(&id->claim.local, id->claim.ps));
	if (err)
		return err;
	id->serving = true;
	id->backlog = backlog <= 0 || wanted > max ? max : wanted;
	id->state = ID_LISTEN;
	if (addr_is_any(&id->claim.local))
		engine->n_wildcards++;
	return 0;
}

static int start_listening(struct id *id, int backlog)
{
	char text[ADDR_STR_BYTES];
	union addr any;
	int err = 0;

	addr_set_any(&any, AF_INET);
	if (engine_id_is(id, ID_IDLE))
		err = bind_local(id, &any);
	if (!err && !engine_id_is(id, ID_ADDR_BOUND))
		err = -EINVAL;
	if (!err)
		err = open_ports(id);
	if (!err && id->path.gid.verbs) /* a failed rdma_resolve_addr() may have bound it */
		err = id_attach(id);
	if (!err)
		err = claims_listen(id);
	if (err)
		return err;
	err = serve_requests(engine_lock(), id, backlog);
	engine_unlock();
	device_close_unused(true);
	if (err)
		return err;
	id_publish_addrs(id);
	if (log_is_debug()) /* scripts wait for this line before they start a client */
		log_debug("listening on %s", addr_str(&id->claim.local, text));
	return 0;
}

int rdma_listen(struct rdma_cm_id *id, int backlog)
{
	return api_return(id_check(id) ?: start_listening(id_of(id), backlog));
}
