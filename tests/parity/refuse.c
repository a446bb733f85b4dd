/* SPDX-License-Identifier: BSD-2-Clause */
/* Parity: rejections, by both sides and in every state. */
#include "steps.h"

#define REJ_DATA_MAX 148

static const uint8_t long_data[REJ_DATA_MAX + 1] = { [0] = 1, [REJ_DATA_MAX - 1] = 2 };

/*
 * The client of most rejections: connects, prints the event, and what the id can be used for
 * afterwards.
 */
static void connect_and_be_rejected(struct scene *s)
{
	struct rdma_cm_id *id = dial_ready(s, RDMA_PS_TCP);
	struct rdma_conn_param param = usual_param("let me in");

	make_qp(id);
	DO(rdma_connect(id, &param));
	take_event(s);
	show_qp_state(id);
	show_quiet(s->channel);
	DO(rdma_connect(id, &param));
	DO(rdma_disconnect(id));
	DO(rdma_resolve_addr(id, NULL, at(&s->peer, s->port), RESOLVE_MS));
	meet(s);
	close_id(id);
}

static void connect_without_listener(struct scene *s)
{
	s->port += 400;
	connect_and_be_rejected(s);
}

static void listen_elsewhere(struct scene *s)
{
	struct rdma_cm_id *listener = listen_here(s, RDMA_PS_TCP, 0);

	meet(s);
	show_quiet(s->channel);
	close_id(listener);
}

static void reject_with(struct scene *s, const void *data, uint8_t length)
{
	struct rdma_cm_id *listener = listen_here(s, RDMA_PS_TCP, 0), *child;

	child = wait_request(s);
	DO(rdma_reject(child, data, length));
	meet(s);
	show_quiet(s->channel);
	close_id(child);
	close_id(listener);
}

static void reject_without_data(struct scene *s)
{
	reject_with(s, NULL, 0);
}

static void reject_with_data(struct scene *s)
{
	reject_with(s, "no thanks", 9);
}

static void reject_with_most_data(struct scene *s)
{
	reject_with(s, long_data, REJ_DATA_MAX);
}

static void reject_with_too_much_data(struct scene *s)
{
	struct rdma_cm_id *listener = listen_here(s, RDMA_PS_TCP, 0), *child;

	child = wait_request(s);
	DO(rdma_reject(child, long_data, REJ_DATA_MAX + 1));
	DO(rdma_reject(child, long_data, 255));
	DO(rdma_reject(child, "short", 5));
	meet(s);
	close_id(child);
	close_id(listener);
}

static void reject_with_ece(struct scene *s)
{
	struct rdma_cm_id *listener = listen_here(s, RDMA_PS_TCP, 0), *child;

	child = wait_request(s);
	DO(rdma_reject_ece(child, "ece", 3));
	meet(s);
	close_id(child);
	close_id(listener);
}

static void reject_twice(struct scene *s)
{
	struct rdma_cm_id *listener = listen_here(s, RDMA_PS_TCP, 0), *child;
	struct rdma_conn_param param = usual_param(NULL);

	child = wait_request(s);
	make_qp(child);
	DO(rdma_reject(child, "once", 4));
	DO(rdma_reject(child, "twice", 5));
	DO(rdma_accept(child, &param));
	show_qp_state(child);
	DO(rdma_disconnect(child));
	meet(s);
	show_quiet(s->channel);
	close_id(child);
	close_id(listener);
}

static void reject_by_destroy(struct scene *s)
{
	struct rdma_cm_id *listener = listen_here(s, RDMA_PS_TCP, 0);

	DO(rdma_destroy_id(wait_request(s)));
	meet(s);
	close_id(listener);
}

static void listen_with(struct scene *s, struct sockaddr *addr, enum rdma_port_space ps)
{
	struct rdma_cm_id *listener = open_id(s, "listener", ps);
	int on = 1;

	if (rdma_set_option(listener, RDMA_OPTION_ID, RDMA_OPTION_ID_AFONLY, &on, sizeof(on)))
		give_up("rdma_set_option: %s", strerror(errno));
	DO(rdma_bind_addr(listener, addr));
	DO(rdma_listen(listener, 0));
	meet(s);
	meet(s);
	show_quiet(s->channel);
	close_id(listener);
}

static void listen_on_the_other_family(struct scene *s)
{
	listen_with(s, numeric(s->family == AF_INET ? "::" : "0.0.0.0", s->port), RDMA_PS_TCP);
}

static void listen_for_datagrams(struct scene *s)
{
	listen_with(s, any(s, s->port), RDMA_PS_UDP);
}

/* Without a queue pair the active side may reject the reply. */
static void reject_the_reply(struct scene *s)
{
	struct rdma_cm_id *id = dial_ready(s, RDMA_PS_TCP);
	struct rdma_conn_param param = usual_param("let me in");

	param.qp_num = unused_qpn();
	DO(rdma_connect(id, &param));
	take_event(s);
	DO(rdma_reject(id, "changed my mind", 15));
	DO(rdma_establish(id));
	meet(s);
	show_quiet(s->channel);
	close_id(id);
}

static void accept_and_be_rejected(struct scene *s)
{
	struct rdma_cm_id *listener = listen_here(s, RDMA_PS_TCP, 0), *child;
	struct rdma_conn_param param = usual_param("welcome");

	child = wait_request(s);
	make_qp(child);
	DO(rdma_accept(child, &param));
	take_event(s);
	show_qp_state(child);
	DO(rdma_disconnect(child));
	meet(s);
	show_quiet(s->channel);
	close_id(child);
	close_id(listener);
}

static void leave_before_the_reply(struct scene *s)
{
	struct rdma_cm_id *id = dial_ready(s, RDMA_PS_TCP);
	struct rdma_conn_param param = usual_param("let me in");

	make_qp(id);
	DO(rdma_connect(id, &param));
	meet(s);
	close_id(id);
	meet(s);
}

static void accept_after_the_client_left(struct scene *s)
{
	struct rdma_cm_id *listener = listen_here(s, RDMA_PS_TCP, 0), *child;
	struct rdma_conn_param param = usual_param("welcome");

	child = wait_request(s);
	make_qp(child);
	meet(s);
	meet(s);
	show_quiet(s->channel);
	DO(rdma_accept(child, &param));
	show_qp_state(child);
	DO(rdma_reject(child, NULL, 0));
	show_quiet(s->channel);
	close_id(child);
	close_id(listener);
}

const struct scenario refuse_scenarios[] = {
	PAIR("refuse-no-listener", connect_without_listener, listen_elsewhere, 0,
	     "nobody listens on the port"),
	PAIR("refuse-silently", connect_and_be_rejected, reject_without_data, 0,
	     "a consumer's reject without private data"),
	PAIR("refuse-with-data", connect_and_be_rejected, reject_with_data, 0,
	     "a consumer's reject with private data"),
	PAIR("refuse-with-most-data", connect_and_be_rejected, reject_with_most_data, 0,
	     "a consumer's reject with as much private data as fits"),
	PAIR("refuse-too-long", connect_and_be_rejected, reject_with_too_much_data, 0,
	     "a consumer's reject with too much private data"),
	PAIR("refuse-ece", connect_and_be_rejected, reject_with_ece, 0, "rdma_reject_ece"),
	PAIR("refuse-twice", connect_and_be_rejected, reject_twice, 0,
	     "reject, then reject and accept once more"),
	PAIR("refuse-by-destroy", connect_and_be_rejected, reject_by_destroy, 0,
	     "the request's id is destroyed"),
	PAIR("refuse-other-family", connect_and_be_rejected, listen_on_the_other_family, 0,
	     "the listener takes only the other address family"),
	PAIR("refuse-other-space", connect_and_be_rejected, listen_for_datagrams, 0,
	     "the listener is in another port space"),
	PAIR("refuse-reply", reject_the_reply, accept_and_be_rejected, 0,
	     "the active side refuses the reply"),
	PAIR("refuse-too-late", leave_before_the_reply, accept_after_the_client_left, 0,
	     "the active side is gone before the request is accepted"),
	LAST_SCENARIO,
};
