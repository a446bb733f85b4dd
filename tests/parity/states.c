/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Parity: every call in every state. Each cell of the matrix gets an id of its own, brought into
 * the state by a builder; state_ops.c holds the calls.
 */
#include "state_ops.h"
#include "steps.h"

static struct rdma_cm_id *idle(struct scene *s)
{
	return open_id(s, "id", RDMA_PS_TCP);
}

static struct rdma_cm_id *bound(struct scene *s)
{
	struct rdma_cm_id *id = idle(s);

	if (rdma_bind_addr(id, at(&s->self, 0)))
		give_up("rdma_bind_addr: %s", strerror(errno));
	return id;
}

static struct rdma_cm_id *bound_to_wildcard(struct scene *s)
{
	struct rdma_cm_id *id = idle(s);

	if (rdma_bind_addr(id, any(s, 0)))
		give_up("rdma_bind_addr: %s", strerror(errno));
	return id;
}

static struct rdma_cm_id *listening(struct scene *s)
{
	struct rdma_cm_id *id = bound(s);

	if (rdma_listen(id, 0))
		give_up("rdma_listen: %s", strerror(errno));
	return id;
}

static struct rdma_cm_id *address_resolved(struct scene *s)
{
	struct rdma_cm_id *id = idle(s);

	if (rdma_resolve_addr(id, NULL, at(&s->peer, s->port), RESOLVE_MS))
		give_up("rdma_resolve_addr: %s", strerror(errno));
	expect_event(s, RDMA_CM_EVENT_ADDR_RESOLVED);
	return id;
}

static struct rdma_cm_id *route_resolved(struct scene *s)
{
	struct rdma_cm_id *id = idle(s);

	resolve(s, id, s->port);
	return id;
}

static struct rdma_cm_id *connecting(struct scene *s)
{
	struct rdma_conn_param param = usual_param(NULL);
	struct rdma_cm_id *id = idle(s);

	if (rdma_resolve_addr(id, NULL, beside(s, GONE, s->port), RESOLVE_MS))
		give_up("rdma_resolve_addr: %s", strerror(errno));
	expect_event(s, RDMA_CM_EVENT_ADDR_RESOLVED);
	if (rdma_resolve_route(id, RESOLVE_MS))
		give_up("rdma_resolve_route: %s", strerror(errno));
	expect_event(s, RDMA_CM_EVENT_ROUTE_RESOLVED);
	param.qp_num = unused_qpn();
	if (rdma_connect(id, &param))
		give_up("rdma_connect: %s", strerror(errno));
	return id;
}

static void walk(struct scene *s, struct rdma_cm_id *(*build)(struct scene *), unsigned avoid)
{
	const struct state_op *op;
	struct rdma_cm_id *id;

	for (op = state_ops; op->name; op++) {
		id = build(s);
		run_state_op(op, s, id, avoid);
		close_id(id);
	}
}

static void walk_idle(struct scene *s)
{
	walk(s, idle, 0);
}

static void walk_bound(struct scene *s)
{
	walk(s, bound, 0);
}

static void walk_wildcard(struct scene *s)
{
	walk(s, bound_to_wildcard, 0);
}

static void walk_listening(struct scene *s)
{
	walk(s, listening, 0);
}

static void walk_address_resolved(struct scene *s)
{
	walk(s, address_resolved, 0);
}

static void walk_route_resolved(struct scene *s)
{
	walk(s, route_resolved, 0);
}

static void walk_connecting(struct scene *s)
{
	walk(s, connecting, ENDS_REQUEST);
}

/* Iterates over states that need the other side, which does its part once for each call. */
static void walk_with_peer(struct scene *s, struct rdma_cm_id *(*build)(struct scene *),
			   unsigned avoid)
{
	const struct state_op *op;
	struct rdma_cm_id *id;

	for (op = state_ops; op->name; op++) {
		id = build(s);
		run_state_op(op, s, id, avoid);
		show_remains(id);
		meet(s);
		close_id(id);
		meet(s);
	}
}

static struct rdma_cm_id *answered(struct scene *s)
{
	struct rdma_conn_param param = usual_param("answered");
	struct rdma_cm_id *id = route_resolved(s);

	param.qp_num = unused_qpn();
	if (rdma_connect(id, &param))
		give_up("rdma_connect: %s", strerror(errno));
	expect_event(s, RDMA_CM_EVENT_CONNECT_RESPONSE);
	return id;
}

static struct rdma_cm_id *connected(struct scene *s)
{
	struct rdma_conn_param param = usual_param("connected");
	struct rdma_cm_id *id = route_resolved(s);

	make_qp(id);
	if (rdma_connect(id, &param))
		give_up("rdma_connect: %s", strerror(errno));
	expect_event(s, RDMA_CM_EVENT_ESTABLISHED);
	meet(s);
	return id;
}

static struct rdma_cm_id *disconnected(struct scene *s)
{
	struct rdma_cm_id *id = connected(s);

	if (rdma_disconnect(id))
		give_up("rdma_disconnect: %s", strerror(errno));
	expect_event(s, RDMA_CM_EVENT_DISCONNECTED);
	return id;
}

static struct rdma_cm_id *rejected(struct scene *s)
{
	struct rdma_conn_param param = usual_param("rejected");
	struct rdma_cm_id *id = route_resolved(s);

	make_qp(id);
	if (rdma_connect(id, &param))
		give_up("rdma_connect: %s", strerror(errno));
	expect_event(s, RDMA_CM_EVENT_REJECTED);
	return id;
}

static void walk_answered(struct scene *s)
{
	meet(s);
	walk_with_peer(s, answered, 0);
}

static void walk_connected(struct scene *s)
{
	meet(s);
	walk_with_peer(s, connected, USES_ALTERNATE);
}

static void walk_disconnected(struct scene *s)
{
	meet(s);
	walk_with_peer(s, disconnected, 0);
}

static void walk_rejected(struct scene *s)
{
	meet(s);
	walk_with_peer(s, rejected, 0);
}

/* Prints and takes events until the connection has ended. */
static void take_until_over(struct scene *s)
{
	enum rdma_cm_event_type type;
	struct rdma_cm_event *event;

	do {
		event = wait_event(s->channel);
		type = event->event;
		rdma_ack_cm_event(event);
	} while (type != RDMA_CM_EVENT_REJECTED && type != RDMA_CM_EVENT_DISCONNECTED);
}

/* The peer makes its call before it confirms the reply. */
static struct rdma_cm_id *accept_and_continue(struct scene *s)
{
	struct rdma_conn_param param = usual_param("welcome");
	struct rdma_cm_id *child = wait_request(s);

	make_qp(child);
	if (rdma_accept(child, &param))
		give_up("rdma_accept: %s", strerror(errno));
	return child;
}

static void serve_each(struct scene *s, struct rdma_cm_id *(*serve)(struct scene *))
{
	struct rdma_cm_id *listener = listen_here(s, RDMA_PS_TCP, 0), *child;
	const struct state_op *op;

	for (op = state_ops; op->name; op++) {
		SAY("peer's call: %s", op->name);
		child = serve(s);
		meet(s);
		take_until_over(s);
		close_id(child);
		meet(s);
	}
	close_id(listener);
}

static void serve_answered(struct scene *s)
{
	serve_each(s, accept_and_continue);
}

static void serve_connected(struct scene *s)
{
	serve_each(s, answer);
}

/* The peer waits for our DREP before its call. */
static void accept_and_disconnect_each(struct scene *s)
{
	struct rdma_cm_id *listener = listen_here(s, RDMA_PS_TCP, 0), *child;
	const struct state_op *op;

	for (op = state_ops; op->name; op++) {
		child = answer(s);
		expect_event(s, RDMA_CM_EVENT_DISCONNECTED);
		if (rdma_disconnect(child))
			give_up("rdma_disconnect: %s", strerror(errno));
		meet(s);
		meet(s);
		close_id(child);
	}
	close_id(listener);
}

static void reject_each(struct scene *s)
{
	struct rdma_cm_id *listener = listen_here(s, RDMA_PS_TCP, 0), *child;
	const struct state_op *op;

	for (op = state_ops; op->name; op++) {
		child = wait_request(s);
		if (rdma_reject(child, NULL, 0))
			give_up("rdma_reject: %s", strerror(errno));
		close_id(child);
		meet(s);
		meet(s);
	}
	close_id(listener);
}

static void walk_requested(struct scene *s)
{
	struct rdma_cm_id *listener = listen_here(s, RDMA_PS_TCP, 0);

	walk_with_peer(s, wait_request, 0);
	close_id(listener);
}

static struct rdma_cm_id *requested_with_qp(struct scene *s)
{
	struct rdma_cm_id *child = wait_request(s);

	make_qp(child);
	return child;
}

static void walk_requested_with_qp(struct scene *s)
{
	struct rdma_cm_id *listener = listen_here(s, RDMA_PS_TCP, 0);

	walk_with_peer(s, requested_with_qp, 0);
	close_id(listener);
}

static void request_each(struct scene *s)
{
	struct rdma_conn_param param = usual_param("request");
	const struct state_op *op;
	struct rdma_cm_id *id;

	meet(s);
	for (op = state_ops; op->name; op++) {
		SAY("peer's call: %s", op->name);
		id = route_resolved(s);
		make_qp(id);
		if (rdma_connect(id, &param))
			give_up("rdma_connect: %s", strerror(errno));
		if (op->flags & ACCEPTS)
			take_event(s);
		meet(s);
		take_until_over(s);
		meet(s);
		close_id(id);
	}
}

const struct scenario state_scenarios[] = {
	LOCAL("state-idle", walk_idle, 0, "every call on a new id"),
	LOCAL("state-bound", walk_bound, 0, "every call on a bound id"),
	LOCAL("state-wildcard", walk_wildcard, 0, "every call on an id without a device"),
	LOCAL("state-listening", walk_listening, 0, "every call on a listener"),
	LOCAL("state-address-resolved", walk_address_resolved, 0,
	      "every call on an id with its address resolved"),
	LOCAL("state-route-resolved", walk_route_resolved, 0,
	      "every call on an id with its route resolved"),
	LOCAL("state-connecting", walk_connecting, 0, "every call on an id that waits for a reply"),
	PAIR_LIMIT("state-answered", walk_answered, serve_answered, 0, 60,
		   "every call on an id with a reply to confirm"),
	PAIR_LIMIT("state-connected", walk_connected, serve_connected, 0, 60,
		   "every call on a connected id"),
	PAIR_LIMIT("state-disconnected", walk_disconnected, accept_and_disconnect_each, 0, 60,
		   "every call on a disconnected id"),
	PAIR_LIMIT("state-rejected", walk_rejected, reject_each, 0, 60,
		   "every call on a rejected id"),
	PAIR_LIMIT("state-requested", request_each, walk_requested, 0, 60,
		   "every call on the id of a request"),
	PAIR_LIMIT("state-requested-qp", request_each, walk_requested_with_qp, 0, 60,
		   "the same with a queue pair"),
	LAST_SCENARIO,
};
