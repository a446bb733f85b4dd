/* SPDX-License-Identifier: BSD-2-Clause */
/* Parity: ids destroyed in every state, and the events at the other side. */
#include "steps.h"

static void ids_are_destroyed_before_connecting(struct scene *s)
{
	struct rdma_cm_id *id;

	SAY("idle");
	DO(rdma_destroy_id(open_id(s, "id", RDMA_PS_TCP)));
	SAY("bound");
	id = open_id(s, "id", RDMA_PS_TCP);
	DO(rdma_bind_addr(id, at(&s->self, 0)));
	DO(rdma_destroy_id(id));
	SAY("listening");
	id = open_id(s, "id", RDMA_PS_TCP);
	DO(rdma_bind_addr(id, any(s, s->port)));
	DO(rdma_listen(id, 0));
	DO(rdma_destroy_id(id));
	SAY("address being resolved");
	id = open_id(s, "id", RDMA_PS_TCP);
	DO(rdma_resolve_addr(id, NULL, beside(s, SILENT, s->port), RESOLVE_MS));
	DO(rdma_destroy_id(id));
	SAY("address resolved, event waiting");
	id = open_id(s, "id", RDMA_PS_TCP);
	DO(rdma_resolve_addr(id, NULL, at(&s->peer, s->port), RESOLVE_MS));
	SAY("waits %d", is_ready(s->channel, PATIENCE_MS));
	DO(rdma_destroy_id(id));
	SAY("route resolved, event waiting");
	id = open_id(s, "id", RDMA_PS_TCP);
	DO(rdma_resolve_addr(id, NULL, at(&s->peer, s->port), RESOLVE_MS));
	take_event(s);
	DO(rdma_resolve_route(id, RESOLVE_MS));
	DO(rdma_destroy_id(id));
	show_quiet(s->channel);
}

static void queue_pair_may_outlive_the_id(struct scene *s)
{
	struct rdma_cm_id *id = open_id(s, "id", RDMA_PS_TCP);
	struct ibv_cq *cq;
	struct ibv_qp *qp;

	DO(rdma_bind_addr(id, at(&s->self, 0)));
	cq = ibv_create_cq(id->verbs, 4, NULL, NULL, 0);
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_RC,
		.send_cq = cq,
		.recv_cq = cq,
		.cap = { .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1 },
	};
	DO(rdma_create_qp(id, NULL, &attr));
	qp = id->qp;
	DO(rdma_destroy_id(id));
	DO(ibv_destroy_qp(qp));
	DO(ibv_destroy_cq(cq));
}

/* The steps after which the client destroys its id. */
static void destroy_when_sent(struct scene *s)
{
	struct rdma_cm_id *id = dial_ready(s, RDMA_PS_TCP);
	struct rdma_conn_param param = usual_param("bye");

	param.qp_num = unused_qpn();
	DO(rdma_connect(id, &param));
	meet(s);
	DO(rdma_destroy_id(id));
	meet(s);
}

static void destroy_when_answered(struct scene *s)
{
	struct rdma_cm_id *id = dial_ready(s, RDMA_PS_TCP);
	struct rdma_conn_param param = usual_param("bye");

	param.qp_num = unused_qpn();
	DO(rdma_connect(id, &param));
	take_event(s);
	meet(s);
	DO(rdma_destroy_id(id));
	meet(s);
}

static void destroy_when_connected(struct scene *s)
{
	struct rdma_cm_id *id = dial(s);

	meet(s);
	rdma_destroy_qp(id);
	DO(rdma_destroy_id(id));
	meet(s);
}

static void destroy_while_disconnecting(struct scene *s)
{
	struct rdma_cm_id *id = dial(s);

	meet(s);
	DO(rdma_disconnect(id));
	close_id(id);
	meet(s);
}

static void keep_request(struct scene *s)
{
	struct rdma_cm_id *listener = listen_here(s, RDMA_PS_TCP, 0), *child = wait_request(s);

	meet(s);
	meet(s);
	show_quiet(s->channel);
	DO(rdma_reject(child, NULL, 0));
	DO(rdma_destroy_id(child));
	close_id(listener);
}

static void accept_then_watch(struct scene *s)
{
	struct rdma_cm_id *listener = listen_here(s, RDMA_PS_TCP, 0), *child = wait_request(s);
	struct rdma_conn_param param = usual_param("bye");

	make_qp(child);
	DO(rdma_accept(child, &param));
	meet(s);
	take_event(s);
	show_qp_state(child);
	meet(s);
	show_quiet(s->channel);
	DO(rdma_disconnect(child));
	close_id(child);
	close_id(listener);
}

static void connected_then_watch(struct scene *s)
{
	struct rdma_cm_id *listener = listen_here(s, RDMA_PS_TCP, 0), *child = answer(s);

	meet(s);
	take_event(s);
	meet(s);
	show_quiet(s->channel);
	DO(rdma_disconnect(child));
	close_id(child);
	close_id(listener);
}

/* The server destroys its id; the client observes. */
static void connect_and_watch(struct scene *s)
{
	struct rdma_cm_id *id = dial_ready(s, RDMA_PS_TCP);
	struct rdma_conn_param param = usual_param("watching");

	param.qp_num = unused_qpn();
	DO(rdma_connect(id, &param));
	take_event(s);
	meet(s);
	meet(s);
	take_event(s);
	DO(rdma_establish(id));
	DO(rdma_disconnect(id));
	show_quiet(s->channel);
	close_id(id);
}

static void destroy_when_reply_is_sent(struct scene *s)
{
	struct rdma_cm_id *listener = listen_here(s, RDMA_PS_TCP, 0), *child = wait_request(s);
	struct rdma_conn_param param = usual_param("bye");

	param.qp_num = unused_qpn();
	DO(rdma_accept(child, &param));
	meet(s);
	DO(rdma_destroy_id(child));
	meet(s);
	close_id(listener);
}

static void connected_and_watch(struct scene *s)
{
	struct rdma_cm_id *id = dial(s);

	meet(s);
	take_event(s);
	DO(rdma_disconnect(id));
	show_quiet(s->channel);
	close_id(id);
}

static void destroy_connected_child(struct scene *s)
{
	struct rdma_cm_id *listener = listen_here(s, RDMA_PS_TCP, 0), *child = answer(s);

	meet(s);
	close_id(child);
	close_id(listener);
}

static void destroy_in_timewait(struct scene *s)
{
	struct rdma_cm_id *listener = listen_here(s, RDMA_PS_TCP, 0), *child = answer(s);

	meet(s);
	DO(rdma_disconnect(child));
	take_event(s);
	DO(rdma_disconnect(child));
	close_id(child);
	close_id(listener);
}

/* A late reply to a destroyed id must have no effect. */
static void accept_after_the_client_left(struct scene *s)
{
	struct rdma_cm_id *listener = listen_here(s, RDMA_PS_TCP, 0), *child = wait_request(s);
	struct rdma_conn_param param = usual_param("late");

	meet(s);
	meet(s);
	show_quiet(s->channel);
	param.qp_num = unused_qpn();
	DO(rdma_accept(child, &param));
	show_quiet(s->channel);
	DO(rdma_destroy_id(child));
	close_id(listener);
}

const struct scenario destroy_scenarios[] = {
	LOCAL("destroy-early", ids_are_destroyed_before_connecting, 0,
	      "every state before connect"),
	LOCAL("destroy-before-qp", queue_pair_may_outlive_the_id, 0,
	      "the id before its queue pair"),
	PAIR("destroy-request-sent", destroy_when_sent, keep_request, 0,
	     "the active side waits for a reply"),
	PAIR("destroy-request-accepted", destroy_when_sent, accept_after_the_client_left, 0,
	     "the reply finds the active side gone"),
	PAIR("destroy-reply-received", destroy_when_answered, accept_then_watch, 0,
	     "the active side has a reply to confirm"),
	PAIR("destroy-connected", destroy_when_connected, connected_then_watch, 0,
	     "the active side is connected"),
	PAIR("destroy-disconnecting", destroy_while_disconnecting, connected_then_watch, 0,
	     "the active side waits for the end of the connection"),
	PAIR("destroy-reply-sent", connect_and_watch, destroy_when_reply_is_sent, 0,
	     "the passive side waits for the confirmation"),
	PAIR("destroy-child", connected_and_watch, destroy_connected_child, 0,
	     "the passive side is connected"),
	PAIR("destroy-timewait", connected_and_watch, destroy_in_timewait, 0,
	     "the passive side is in timewait"),
	LAST_SCENARIO,
};
