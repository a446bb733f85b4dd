/* SPDX-License-Identifier: BSD-2-Clause */
/* Parity: ends of connections. */
#include "steps.h"

/* Much longer than the timewait of both sides: 2 s on RoCE. */
#define TIMEWAIT_MS 20000

static void disconnect_first(struct scene *s)
{
	struct rdma_cm_id *id = dial(s);

	DO(rdma_disconnect(id));
	show_qp_state(id);
	take_event(s);
	DO(rdma_disconnect(id));
	show_quiet(s->channel);
	meet(s);
	close_id(id);
}

static void await_disconnect(struct scene *s)
{
	struct rdma_cm_id *listener = listen_here(s, RDMA_PS_TCP, 0), *child = answer(s);

	take_event(s);
	show_qp_state(child);
	DO(rdma_disconnect(child));
	show_qp_state(child);
	DO(rdma_disconnect(child));
	show_quiet(s->channel);
	meet(s);
	close_id(child);
	close_id(listener);
}

static void await_disconnect_of_server(struct scene *s)
{
	struct rdma_cm_id *id = dial(s);

	meet(s);
	take_event(s);
	show_qp_state(id);
	DO(rdma_disconnect(id));
	show_qp_state(id);
	show_quiet(s->channel);
	meet(s);
	close_id(id);
}

static void disconnect_as_server(struct scene *s)
{
	struct rdma_cm_id *listener = listen_here(s, RDMA_PS_TCP, 0), *child = answer(s);

	meet(s);
	DO(rdma_disconnect(child));
	show_qp_state(child);
	take_event(s);
	show_quiet(s->channel);
	meet(s);
	close_id(child);
	close_id(listener);
}

static void disconnect_at_once(struct scene *s)
{
	struct rdma_cm_id *id = dial(s);

	meet(s);
	DO(rdma_disconnect(id));
	take_event(s);
	show_qp_state(id);
	show_quiet(s->channel);
	meet(s);
	close_id(id);
}

static void disconnect_on_both_sides(struct scene *s)
{
	struct rdma_cm_id *listener = listen_here(s, RDMA_PS_TCP, 0), *child = answer(s);

	meet(s);
	DO(rdma_disconnect(child));
	take_event(s);
	show_qp_state(child);
	show_quiet(s->channel);
	meet(s);
	close_id(child);
	close_id(listener);
}

/* The application sends DREP: until it disconnects, the peer gets no answer. */
static void await_answer_to_disconnect(struct scene *s)
{
	struct rdma_cm_id *id = dial(s);

	DO(rdma_disconnect(id));
	meet(s);
	show_quiet(s->channel);
	meet(s);
	take_event(s);
	close_id(id);
}

static void answer_disconnect_late(struct scene *s)
{
	struct rdma_cm_id *listener = listen_here(s, RDMA_PS_TCP, 0), *child = answer(s);

	take_event(s);
	meet(s);
	meet(s);
	DO(rdma_disconnect(child));
	close_id(child);
	close_id(listener);
}

static void answer_disconnect_by_destroy(struct scene *s)
{
	struct rdma_cm_id *listener = listen_here(s, RDMA_PS_TCP, 0), *child = answer(s);

	take_event(s);
	meet(s);
	meet(s);
	close_id(child);
	close_id(listener);
}

static void disconnect_and_await_timewait(struct scene *s)
{
	struct rdma_cm_id *id = dial(s);

	DO(rdma_disconnect(id));
	take_event(s);
	rdma_ack_cm_event(wait_event_for(s->channel, TIMEWAIT_MS));
	DO(rdma_disconnect(id));
	show_quiet(s->channel);
	meet(s);
	close_id(id);
}

static void answer_and_await_timewait(struct scene *s)
{
	struct rdma_cm_id *listener = listen_here(s, RDMA_PS_TCP, 0), *child = answer(s);

	take_event(s);
	DO(rdma_disconnect(child));
	rdma_ack_cm_event(wait_event_for(s->channel, TIMEWAIT_MS));
	DO(rdma_disconnect(child));
	show_quiet(s->channel);
	meet(s);
	close_id(child);
	close_id(listener);
}

static void destroy_in_reply(struct scene *s)
{
	struct rdma_cm_id *listener = listen_here(s, RDMA_PS_TCP, 0), *child = answer(s);

	meet(s);
	take_event(s);
	close_id(child);
	close_id(listener);
}

static void leave_by_destroy(struct scene *s)
{
	struct rdma_cm_id *id = dial(s);

	meet(s);
	close_id(id);
}

static void disconnect_before_established(struct scene *s)
{
	struct rdma_cm_id *id = dial_ready(s, RDMA_PS_TCP);
	struct rdma_conn_param param = usual_param("half");

	DO(rdma_disconnect(id));
	param.qp_num = unused_qpn();
	DO(rdma_connect(id, &param));
	take_event(s);
	meet(s);
	DO(rdma_disconnect(id));
	show_quiet(s->channel);
	meet(s);
	DO(rdma_establish(id));
	take_event(s);
	DO(rdma_disconnect(id));
	meet(s);
	close_id(id);
}

static void accept_and_disconnect_early(struct scene *s)
{
	struct rdma_cm_id *listener = listen_here(s, RDMA_PS_TCP, 0), *child = wait_request(s);
	struct rdma_conn_param param = usual_param("half");

	DO(rdma_disconnect(child));
	make_qp(child);
	DO(rdma_accept(child, &param));
	meet(s);
	DO(rdma_disconnect(child));
	show_qp_state(child);
	show_quiet(s->channel);
	meet(s);
	take_event(s);
	DO(rdma_disconnect(child));
	take_event(s);
	meet(s);
	close_id(child);
	close_id(listener);
}

const struct scenario disconnect_scenarios[] = {
	PAIR("disconnect-client", disconnect_first, await_disconnect, 0,
	     "begun by the active side"),
	PAIR("disconnect-server", await_disconnect_of_server, disconnect_as_server, 0,
	     "begun by the passive side"),
	PAIR("disconnect-both", disconnect_at_once, disconnect_on_both_sides, 0,
	     "begun by both at once"),
	PAIR("disconnect-late", await_answer_to_disconnect, answer_disconnect_late, 0,
	     "the peer's application takes its time"),
	PAIR("disconnect-destroyed", await_answer_to_disconnect, answer_disconnect_by_destroy, 0,
	     "the peer's application destroys its id instead"),
	PAIR("disconnect-timewait", disconnect_and_await_timewait, answer_and_await_timewait, SLOW,
	     "TIMEWAIT_EXIT on both sides"),
	PAIR("disconnect-vanished", leave_by_destroy, destroy_in_reply, 0,
	     "an id destroyed while it is connected"),
	PAIR("disconnect-half-open", disconnect_before_established, accept_and_disconnect_early, 0,
	     "rdma_disconnect before the connection is established"),
	LAST_SCENARIO,
};
