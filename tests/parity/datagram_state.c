/* SPDX-License-Identifier: BSD-2-Clause */
/* Parity: every call in every state of a lookup, as states.c does it for connections. */
#include "state_ops.h"
#include "steps.h"

/* Runs a call on one id after the other; the other side does its part once for each. */
static void walk(struct scene *s, struct rdma_cm_id *(*build)(struct scene *), bool with_peer)
{
	const struct state_op *op;
	struct rdma_cm_id *id;

	for (op = state_ops; op->name; op++) {
		id = build(s);
		run_state_op(op, s, id, 0);
		show_remains(id);
		if (with_peer)
			meet(s);
		close_id(id);
		if (with_peer)
			meet(s);
	}
}

static void send_lookup(struct rdma_cm_id *id)
{
	struct rdma_conn_param param = { .private_data = NULL };

	make_qp(id);
	if (rdma_connect(id, &param))
		give_up("rdma_connect: %s", strerror(errno));
}

static struct rdma_cm_id *id_looking_up(struct scene *s)
{
	struct rdma_cm_id *id = open_id(s, "id", RDMA_PS_UDP);

	if (rdma_resolve_addr(id, NULL, beside(s, GONE, s->port), RESOLVE_MS))
		give_up("rdma_resolve_addr: %s", strerror(errno));
	expect_event(s, RDMA_CM_EVENT_ADDR_RESOLVED);
	if (rdma_resolve_route(id, RESOLVE_MS))
		give_up("rdma_resolve_route: %s", strerror(errno));
	expect_event(s, RDMA_CM_EVENT_ROUTE_RESOLVED);
	send_lookup(id);
	return id;
}

static struct rdma_cm_id *look_up(struct scene *s, enum rdma_cm_event_type outcome)
{
	struct rdma_cm_id *id = open_id(s, "id", RDMA_PS_UDP);

	resolve(s, id, s->port);
	send_lookup(id);
	expect_event(s, outcome);
	return id;
}

static struct rdma_cm_id *found(struct scene *s)
{
	return look_up(s, RDMA_CM_EVENT_ESTABLISHED);
}

static struct rdma_cm_id *not_found(struct scene *s)
{
	return look_up(s, RDMA_CM_EVENT_UNREACHABLE);
}

/* No event follows the accept, unlike that of a child. */
static struct rdma_cm_id *asked(struct scene *s)
{
	struct rdma_cm_id *id = wait_request(s);

	assign_id_name(id, "lookup");
	return id;
}

static struct rdma_cm_id *answered(struct scene *s)
{
	struct rdma_conn_param param = { .private_data = NULL };
	struct rdma_cm_id *id = asked(s);

	make_qp(id);
	if (rdma_accept(id, &param))
		give_up("rdma_accept: %s", strerror(errno));
	return id;
}

static struct rdma_cm_id *refused(struct scene *s)
{
	struct rdma_cm_id *id = asked(s);

	if (rdma_reject(id, NULL, 0))
		give_up("rdma_reject: %s", strerror(errno));
	return id;
}

static void walk_looking(struct scene *s)
{
	walk(s, id_looking_up, false);
}

static void walk_found(struct scene *s)
{
	meet(s);
	walk(s, found, true);
}

static void walk_not_found(struct scene *s)
{
	meet(s);
	walk(s, not_found, true);
}

static void walk_beside_listener(struct scene *s, struct rdma_cm_id *(*build)(struct scene *))
{
	struct rdma_cm_id *listener = listen_here(s, RDMA_PS_UDP, 0);

	walk(s, build, true);
	close_id(listener);
}

static void walk_asked(struct scene *s)
{
	walk_beside_listener(s, asked);
}

static void walk_answered(struct scene *s)
{
	walk_beside_listener(s, answered);
}

static void walk_refused(struct scene *s)
{
	walk_beside_listener(s, refused);
}

/* Its result is known at the latest when the peer has destroyed its id. */
static void look_up_each(struct scene *s)
{
	const struct state_op *op;
	struct rdma_cm_id *id;

	meet(s);
	for (op = state_ops; op->name; op++) {
		SAY("peer's call: %s", op->name);
		id = open_id(s, "id", RDMA_PS_UDP);
		resolve(s, id, s->port);
		send_lookup(id);
		meet(s);
		take_event(s);
		meet(s);
		close_id(id);
	}
}

const struct scenario datagram_state_scenarios[] = {
	LOCAL("state-datagram-id_looking_up", walk_looking, 0, "every call on an id that looks up"),
	PAIR_LIMIT("state-datagram-found", walk_found, walk_answered, 0, 60,
		   "every call on both ids of a lookup that was answered"),
	PAIR_LIMIT("state-datagram-not-found", walk_not_found, walk_refused, 0, 60,
		   "every call on both ids of a lookup that was refused"),
	PAIR_LIMIT("state-datagram-asked", look_up_each, walk_asked, 0, 60,
		   "every call on the id of a lookup"),
	LAST_SCENARIO,
};
