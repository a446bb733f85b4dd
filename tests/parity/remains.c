/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Parity: the effect of each call of state_ops.c on an id and its queue pair, whether it fails or
 * not. The id has a queue pair wherever it has a device; states.c has ids without.
 */
#include "state_ops.h"
#include "steps.h"

#define SOON_MS 300

enum stage {
	WILDCARD,
	LOOPBACK,	 /* the wildcard address resolved */
	UNRESOLVED,	 /* after ADDR_ERROR */
	UNRESOLVED_FROM, /* the same, from an address that the caller gave */
	BOUND,
	LISTENING,
	RESOLVED,
	ROUTED,
	ASKING, /* waits for a host that does not answer */
};

static void bind_to(struct rdma_cm_id *id, struct sockaddr *addr)
{
	if (rdma_bind_addr(id, addr))
		give_up("rdma_bind_addr: %s", strerror(errno));
}

static void fail_to_resolve(struct scene *s, struct rdma_cm_id *id, struct sockaddr *from)
{
	struct rdma_cm_event *event;

	if (rdma_resolve_addr(id, from, beside(s, SILENT, s->port), SOON_MS))
		give_up("rdma_resolve_addr: %s", strerror(errno));
	event = get_event(s->channel, PATIENCE_MS);
	SAY("event %d status %d", event->event, event->status);
	rdma_ack_cm_event(event);
}

static void resolve_to_self(struct scene *s, struct rdma_cm_id *id)
{
	if (rdma_resolve_addr(id, NULL, any(s, s->port), SOON_MS))
		give_up("rdma_resolve_addr: %s", strerror(errno));
	expect_event(s, RDMA_CM_EVENT_ADDR_RESOLVED);
}

static void find_a_route(struct scene *s, struct rdma_cm_id *id, enum stage stage)
{
	if (rdma_resolve_addr(id, NULL, beside(s, GONE, s->port), RESOLVE_MS))
		give_up("rdma_resolve_addr: %s", strerror(errno));
	expect_event(s, RDMA_CM_EVENT_ADDR_RESOLVED);
	if (stage == RESOLVED)
		return;
	if (rdma_resolve_route(id, RESOLVE_MS))
		give_up("rdma_resolve_route: %s", strerror(errno));
	expect_event(s, RDMA_CM_EVENT_ROUTE_RESOLVED);
}

static struct rdma_cm_id *bring(struct scene *s, enum rdma_port_space ps, enum stage stage)
{
	struct rdma_conn_param param = usual_param(NULL);
	struct rdma_cm_id *id = open_id(s, "id", ps);

	if (stage == WILDCARD)
		bind_to(id, any(s, 0));
	else if (stage == UNRESOLVED || stage == UNRESOLVED_FROM)
		fail_to_resolve(s, id, stage == UNRESOLVED ? NULL : at(&s->self, 0));
	else if (stage == LOOPBACK)
		resolve_to_self(s, id);
	else if (stage == BOUND || stage == LISTENING)
		bind_to(id, at(&s->self, 0));
	else
		find_a_route(s, id, stage);
	if (id->verbs && ps != RDMA_PS_IPOIB) /* stock finds no Q_Key for such ids here */
		make_qp(id);
	if (stage == LISTENING && rdma_listen(id, 0))
		give_up("rdma_listen: %s", strerror(errno));
	if (stage == ASKING && rdma_connect(id, &param))
		give_up("rdma_connect: %s", strerror(errno));
	return id;
}

static void walk(struct scene *s, enum rdma_port_space ps, enum stage stage, unsigned avoid)
{
	const struct state_op *op;
	struct rdma_cm_id *id;

	for (op = state_ops; op->name; op++) {
		id = bring(s, ps, stage);
		run_state_op(op, s, id, avoid);
		show_remains(id);
		close_id(id);
	}
}

/* Stock fails, but first sets the access flags of the queue pair; the end takes it 98 s. */
static void accept_while_asking(struct scene *s)
{
	struct rdma_cm_id *id = bring(s, RDMA_PS_TCP, ASKING);
	struct rdma_conn_param param = usual_param(NULL);

	DO(rdma_accept(id, &param));
	show_remains(id);
	close_id(id);
}

static void queue_pair_of_a_listener(struct scene *s, enum rdma_port_space ps)
{
	struct ibv_qp_init_attr attr = {
		.qp_type = ps == RDMA_PS_UDP ? IBV_QPT_UD : IBV_QPT_RC,
		.cap = { .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1 },
	};
	struct rdma_cm_id *id = open_id(s, "id", ps);

	bind_to(id, at(&s->self, 0));
	if (rdma_listen(id, 0))
		give_up("rdma_listen: %s", strerror(errno));
	DO(rdma_create_qp(id, NULL, &attr));
	show_remains(id);
	close_id(id);
}

static void queue_pairs_of_listeners(struct scene *s)
{
	queue_pair_of_a_listener(s, RDMA_PS_TCP);
	queue_pair_of_a_listener(s, RDMA_PS_UDP);
}

#define WALK(name, ps, stage, avoid)       \
	static void name(struct scene *s)  \
	{                                  \
		walk(s, ps, stage, avoid); \
	}

WALK(walk_bound, RDMA_PS_TCP, BOUND, 0)
WALK(walk_listening, RDMA_PS_TCP, LISTENING, 0)
WALK(walk_unresolved, RDMA_PS_TCP, UNRESOLVED, 0)
WALK(walk_unresolved_from, RDMA_PS_TCP, UNRESOLVED_FROM, 0)
WALK(walk_resolved, RDMA_PS_TCP, RESOLVED, 0)
WALK(walk_routed, RDMA_PS_TCP, ROUTED, 0)
WALK(walk_asking, RDMA_PS_TCP, ASKING, ENDS_REQUEST)
WALK(walk_datagram_bound, RDMA_PS_UDP, BOUND, 0)
WALK(walk_datagram_listening, RDMA_PS_UDP, LISTENING, 0)
WALK(walk_datagram_unresolved, RDMA_PS_UDP, UNRESOLVED, 0)
WALK(walk_datagram_unresolved_from, RDMA_PS_UDP, UNRESOLVED_FROM, 0)
WALK(walk_datagram_resolved, RDMA_PS_UDP, RESOLVED, 0)
WALK(walk_datagram_routed, RDMA_PS_UDP, ROUTED, 0)
WALK(walk_datagram_asking, RDMA_PS_UDP, ASKING, 0)
WALK(walk_datagram_wildcard, RDMA_PS_UDP, WILDCARD, 0)
WALK(walk_ipoib_wildcard, RDMA_PS_IPOIB, WILDCARD, 0)
WALK(walk_ipoib_unresolved, RDMA_PS_IPOIB, UNRESOLVED, 0)
WALK(walk_loopback, RDMA_PS_TCP, LOOPBACK, 0)
WALK(walk_datagram_loopback, RDMA_PS_UDP, LOOPBACK, 0)
WALK(walk_ipoib_loopback, RDMA_PS_IPOIB, LOOPBACK, 0)
WALK(walk_ib_resolved, RDMA_PS_IB, RESOLVED, 0)

#define REMAINS(name, walk, of) LOCAL_LIMIT("remains-" name, walk, 0, 60, "every call on " of)

const struct scenario remain_scenarios[] = {
	REMAINS("bound", walk_bound, "a bound id"),
	REMAINS("listening", walk_listening, "a listener"),
	REMAINS("unresolved", walk_unresolved, "an id after ADDR_ERROR"),
	REMAINS("unresolved-from", walk_unresolved_from, "the same, with a source"),
	REMAINS("resolved", walk_resolved, "an id with its address resolved"),
	REMAINS("routed", walk_routed, "an id with its route resolved"),
	REMAINS("asking", walk_asking, "an id that waits for a reply"),
	REMAINS("datagram-bound", walk_datagram_bound, "a bound id, datagrams"),
	REMAINS("datagram-listening", walk_datagram_listening, "a listener, datagrams"),
	REMAINS("datagram-unresolved", walk_datagram_unresolved, "after ADDR_ERROR, datagrams"),
	REMAINS("datagram-unresolved-from", walk_datagram_unresolved_from, "the same"),
	REMAINS("datagram-resolved", walk_datagram_resolved, "an address, datagrams"),
	REMAINS("datagram-routed", walk_datagram_routed, "a route, datagrams"),
	REMAINS("datagram-asking", walk_datagram_asking, "an id that looks up"),
	REMAINS("datagram-wildcard", walk_datagram_wildcard, "a wildcard id, datagrams"),
	REMAINS("ipoib-wildcard", walk_ipoib_wildcard, "a wildcard id of RDMA_PS_IPOIB"),
	REMAINS("ipoib-unresolved", walk_ipoib_unresolved, "the same after ADDR_ERROR"),
	REMAINS("loopback", walk_loopback, "an id that resolved the wildcard address"),
	REMAINS("datagram-loopback", walk_datagram_loopback, "the same, datagrams"),
	REMAINS("ipoib-loopback", walk_ipoib_loopback, "the same, RDMA_PS_IPOIB"),
	REMAINS("ib-resolved", walk_ib_resolved, "an address, RDMA_PS_IB"),
	LOCAL_LIMIT("remains-accept", accept_while_asking, LONG, 200,
		    "an accept while the id waits for a reply"),
	LOCAL("remains-listeners", queue_pairs_of_listeners, 0, "queue pairs of listeners"),
	LAST_SCENARIO,
};
