/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Parity: signals during calls that wait. Each scenario runs run_twice: with a handler that was
 * installed with SA_RESTART, and with one without.
 */
#include <pthread.h>
#include <rdma/rdma_verbs.h>
#include <signal.h>
#include <stdatomic.h>

#include "steps.h"

#define N_SIGNALS  3
#define EXPIRES_MS 1500
#define N_CONNECTS 5

static bool restarts; /* whether the handler has SA_RESTART */

static void on_signal(int number)
{
	(void)number;
}

static void with_each_handler(struct scene *s, void (*play)(struct scene *s))
{
	struct sigaction action = { .sa_handler = on_signal };
	int i;

	for (i = 0; i < 2; i++) {
		restarts = !i;
		action.sa_flags = restarts ? SA_RESTART : 0;
		sigaction(SIGUSR1, &action, NULL);
		SAY("%s SA_RESTART:", restarts ? "with" : "without");
		play(s);
	}
}

/* The server's part, once for each of the client's handlers. */
static void run_twice(struct scene *s, void (*play)(struct scene *s))
{
	play(s);
	play(s);
}

/* --- signals for a thread that waits ------------------------------------- */

struct interrupter {
	pthread_t waiting, thread;
	atomic_bool returned;
	void (*then)(void *arg);
	void *arg;
};

/* It is unknown whether the thread waits already, so it gets more than one signal. */
static void *interrupt(void *arg)
{
	struct interrupter *interrupter = arg;
	int i;

	for (i = 0; i < N_SIGNALS || (!restarts && !atomic_load(&interrupter->returned)); i++) {
		pause_ms(QUIET_MS);
		pthread_kill(interrupter->waiting, SIGUSR1);
	}
	pause_ms(QUIET_MS);
	if (interrupter->then)
		interrupter->then(interrupter->arg);
	return NULL;
}

/* Afterwards, or without SA_RESTART after the call has returned, @then lets it succeed. */
static void begin_signals(struct interrupter *interrupter, void (*then)(void *arg), void *arg)
{
	*interrupter = (struct interrupter){ .waiting = pthread_self(), .then = then, .arg = arg };
	if (pthread_create(&interrupter->thread, NULL, interrupt, interrupter))
		give_up("pthread_create");
}

static void end_signals(struct interrupter *interrupter)
{
	atomic_store(&interrupter->returned, true);
	pthread_join(interrupter->thread, NULL);
}

/* DO() of a call while signals arrive. */
#define DO_AMID_SIGNALS(call, then, arg)                \
	do {                                            \
		struct interrupter interrupter;         \
		int result;                             \
                                                        \
		begin_signals(&interrupter, then, arg); \
		errno = 0;                              \
		result = show_call(#call, (call));      \
		(void)result;                           \
		end_signals(&interrupter);              \
	} while (0)

static void await_peer(void *scene)
{
	meet(scene);
}

/* --- synchronous ids ----------------------------------------------------- */

static struct rdma_cm_id *open_synchronous(const char *label)
{
	struct rdma_cm_id *id;

	if (rdma_create_id(NULL, &id, (void *)(uintptr_t)label, RDMA_PS_TCP))
		give_up("rdma_create_id: %s", strerror(errno));
	assign_id_name(id, label);
	return id;
}

/* The event of a call: in the id, or on its channel if the call did not wait for it. */
static void show_outcome(struct rdma_cm_id *id)
{
	if (restarts)
		show_event(id->event);
	else
		rdma_ack_cm_event(wait_event(id->channel));
}

static void resolve_amid_signals(struct scene *s)
{
	struct rdma_cm_id *id = open_synchronous("id");

	DO_AMID_SIGNALS(rdma_resolve_addr(id, NULL, beside(s, SILENT, s->port), EXPIRES_MS), NULL,
			NULL);
	show_outcome(id);
	DO(rdma_resolve_addr(id, NULL, at(&s->peer, s->port), RESOLVE_MS));
	DO(rdma_resolve_route(id, RESOLVE_MS));
	close_id(id);
}

static void resolve_of_synchronous_id(struct scene *s)
{
	with_each_handler(s, resolve_amid_signals);
}

static struct rdma_cm_id *resolved(struct scene *s)
{
	struct rdma_cm_id *id = open_synchronous("client");

	if (rdma_resolve_addr(id, NULL, at(&s->peer, s->port), RESOLVE_MS) ||
	    rdma_resolve_route(id, RESOLVE_MS))
		give_up("resolve: %s", strerror(errno));
	has_flow_of_ports(rdma_get_src_port(id), rdma_get_dst_port(id));
	return id;
}

static void connect_amid_signals(struct scene *s)
{
	struct rdma_conn_param param = usual_param("amid signals");
	struct rdma_cm_id *id;

	meet(s);
	id = resolved(s);
	make_qp(id);
	DO_AMID_SIGNALS(rdma_connect(id, &param), await_peer, s);
	show_outcome(id);
	show_qp_state(id);
	meet(s);
	close_id(id);
}

static void connect_of_synchronous_id(struct scene *s)
{
	with_each_handler(s, connect_amid_signals);
}

/* Accepts when the client's signals have been sent. */
static void accept_late(struct scene *s)
{
	struct rdma_cm_id *listener = listen_here(s, RDMA_PS_TCP, 1), *child = wait_request(s);
	struct rdma_conn_param param = usual_param("at last");

	make_qp(child);
	meet(s);
	DO(rdma_accept(child, &param));
	expect_event(s, RDMA_CM_EVENT_ESTABLISHED);
	meet(s);
	expect_event(s, RDMA_CM_EVENT_DISCONNECTED);
	close_id(child);
	close_id(listener);
}

static void accept_late_twice(struct scene *s)
{
	run_twice(s, accept_late);
}

static struct rdma_cm_id *listen_synchronously(struct scene *s)
{
	struct rdma_cm_id *id = open_synchronous("listener");

	if (rdma_bind_addr(id, any(s, s->port)) || rdma_listen(id, 1))
		give_up("rdma_listen: %s", strerror(errno));
	return id;
}

static void get_request_amid_signals(struct scene *s)
{
	struct rdma_cm_id *listener = listen_synchronously(s), *child;

	DO_AMID_SIGNALS(rdma_get_request(listener, &child), await_peer, s);
	if (!restarts)
		DO(rdma_get_request(listener, &child));
	assign_id_name(child, "child");
	DO(rdma_reject(child, "no", 2));
	close_id(child);
	close_id(listener);
	meet(s);
}

static void get_request_with_each_handler(struct scene *s)
{
	with_each_handler(s, get_request_amid_signals);
}

static void ask(struct scene *s)
{
	struct rdma_conn_param param = usual_param("anybody there?");
	struct rdma_cm_id *id = dial_ready(s, RDMA_PS_TCP);

	param.qp_num = unused_qpn();
	DO(rdma_connect(id, &param));
	expect_event(s, RDMA_CM_EVENT_REJECTED);
	close_id(id);
	meet(s);
}

static void ask_twice(struct scene *s)
{
	run_twice(s, ask);
}

static void accept_amid_signals(struct scene *s)
{
	struct rdma_cm_id *listener = listen_synchronously(s), *child;
	struct rdma_conn_param param = usual_param("welcome");

	meet(s);
	if (rdma_get_request(listener, &child))
		give_up("rdma_get_request: %s", strerror(errno));
	assign_id_name(child, "child");
	make_qp(child);
	DO_AMID_SIGNALS(rdma_accept(child, &param), await_peer, s);
	show_outcome(child);
	show_qp_state(child);
	meet(s);
	close_id(child);
	close_id(listener);
	meet(s);
}

static void accept_with_each_handler(struct scene *s)
{
	with_each_handler(s, accept_amid_signals);
}

/* Takes the reply, and confirms it after the server's signals have been sent. */
static void establish_late(struct scene *s)
{
	struct rdma_conn_param param = usual_param("no hurry");
	struct rdma_cm_id *id = dial_ready(s, RDMA_PS_TCP);

	param.qp_num = unused_qpn();
	DO(rdma_connect(id, &param));
	expect_event(s, RDMA_CM_EVENT_CONNECT_RESPONSE);
	meet(s);
	DO(rdma_establish(id));
	meet(s);
	expect_event(s, RDMA_CM_EVENT_DISCONNECTED);
	close_id(id);
	meet(s);
}

static void establish_late_twice(struct scene *s)
{
	run_twice(s, establish_late);
}

static void disconnect_amid_signals(struct scene *s)
{
	struct rdma_conn_param param = usual_param("soon over");
	struct rdma_cm_id *id;

	meet(s);
	id = resolved(s);
	make_qp(id);
	if (rdma_connect(id, &param))
		give_up("rdma_connect: %s", strerror(errno));
	meet(s);
	DO_AMID_SIGNALS(rdma_disconnect(id), await_peer, s);
	show_outcome(id);
	close_id(id);
	meet(s);
}

static void disconnect_with_each_handler(struct scene *s)
{
	with_each_handler(s, disconnect_amid_signals);
}

/* Answers the end of the connection when the client's signals have been sent. */
static void disconnect_late(struct scene *s)
{
	struct rdma_cm_id *listener = listen_here(s, RDMA_PS_TCP, 1), *child = accept_request(s);

	meet(s);
	expect_event(s, RDMA_CM_EVENT_DISCONNECTED);
	meet(s);
	DO(rdma_disconnect(child));
	close_id(child);
	close_id(listener);
	meet(s);
}

static void disconnect_late_twice(struct scene *s)
{
	run_twice(s, disconnect_late);
}

static void create_ep_amid_signals(struct scene *s)
{
	struct sockaddr *to = beside(s, SILENT, s->port);
	struct rdma_addrinfo info = {
		.ai_family = s->family,
		.ai_qp_type = IBV_QPT_RC,
		.ai_port_space = RDMA_PS_TCP,
		.ai_dst_len = s->family == AF_INET ? sizeof(struct sockaddr_in)
						   : sizeof(struct sockaddr_in6),
		.ai_dst_addr = to,
	};
	struct rdma_cm_id *id = NULL;

	DO_AMID_SIGNALS(rdma_create_ep(&id, &info, NULL, NULL), NULL, NULL);
	SAY("an id: %d", id != NULL);
}

static void endpoint_with_each_handler(struct scene *s)
{
	with_each_handler(s, create_ep_amid_signals);
}

/* --- completions --------------------------------------------------------- */

struct end {
	struct rdma_cm_id *id;
	struct ibv_mr *mr;
	char buffer[16];
};

static void register_buffer(struct end *end)
{
	memset(end->buffer, 0, sizeof(end->buffer));
	end->mr = rdma_reg_msgs(end->id, end->buffer, sizeof(end->buffer));
	if (!end->mr)
		give_up("rdma_reg_msgs: %s", strerror(errno));
}

static void leave(struct end *end)
{
	rdma_dereg_mr(end->mr);
	close_id(end->id);
}

/* The peer sends and receives after the signals have been sent. */
static void complete_amid_signals(struct scene *s)
{
	struct ibv_wc wc = { 0 };
	struct end end;

	end.id = dial(s);
	register_buffer(&end);
	DO(rdma_post_recv(end.id, NULL, end.buffer, sizeof(end.buffer), end.mr));
	DO_AMID_SIGNALS(rdma_get_recv_comp(end.id, &wc), await_peer, s);
	if (!restarts)
		DO(rdma_get_recv_comp(end.id, &wc));
	DO(rdma_post_send(end.id, NULL, end.buffer, 1, end.mr, IBV_SEND_SIGNALED));
	DO_AMID_SIGNALS(rdma_get_send_comp(end.id, &wc), await_peer, s);
	if (!restarts)
		DO(rdma_get_send_comp(end.id, &wc));
	meet(s);
	leave(&end);
}

static void completions_with_each_handler(struct scene *s)
{
	with_each_handler(s, complete_amid_signals);
}

static void complete_late(struct scene *s)
{
	struct rdma_cm_id *listener = listen_here(s, RDMA_PS_TCP, 1);
	struct end end = { .id = answer(s) };

	register_buffer(&end);
	meet(s);
	DO(rdma_post_send(end.id, NULL, end.buffer, 1, end.mr, 0));
	meet(s);
	DO(rdma_post_recv(end.id, NULL, end.buffer, sizeof(end.buffer), end.mr));
	meet(s);
	expect_event(s, RDMA_CM_EVENT_DISCONNECTED);
	leave(&end);
	close_id(listener);
}

static void complete_late_twice(struct scene *s)
{
	run_twice(s, complete_late);
}

/* --- calls that no signal ends -------------------------------------------- */

static void acknowledge(void *event)
{
	rdma_ack_cm_event(event);
}

static void destroy_amid_signals(struct scene *s)
{
	struct rdma_cm_id *id = open_id(s, "id", RDMA_PS_TCP);
	bool restarts_really = restarts;
	struct rdma_cm_event *event;

	if (rdma_resolve_addr(id, NULL, at(&s->peer, s->port), RESOLVE_MS))
		give_up("rdma_resolve_addr: %s", strerror(errno));
	event = wait_event(s->channel);
	restarts = true; /* the call returns only after the acknowledgement */
	DO_AMID_SIGNALS(rdma_destroy_id(id), acknowledge, event);
	restarts = restarts_really;
}

static void destroy_with_each_handler(struct scene *s)
{
	with_each_handler(s, destroy_amid_signals);
}

static atomic_bool storm_is_over;

static void *send_many_signals(void *arg)
{
	while (!atomic_load(&storm_is_over)) {
		pthread_kill(*(pthread_t *)arg, SIGUSR1);
		usleep(1000);
	}
	return NULL;
}

static void await_event_in_storm(struct scene *s, enum rdma_cm_event_type type)
{
	struct rdma_cm_event *event;

	while (rdma_get_cm_event(s->channel, &event))
		if (errno != EINTR)
			give_up("rdma_get_cm_event: %s", strerror(errno));
	if (event->event != type)
		show_event(event);
	rdma_ack_cm_event(event);
}

static void connect_in_storm(struct scene *s)
{
	struct rdma_conn_param param = usual_param(NULL);
	struct rdma_cm_id *id = open_id(s, "client", RDMA_PS_TCP);

	DO(rdma_resolve_addr(id, NULL, at(&s->peer, s->port), RESOLVE_MS));
	await_event_in_storm(s, RDMA_CM_EVENT_ADDR_RESOLVED);
	DO(rdma_resolve_route(id, RESOLVE_MS));
	await_event_in_storm(s, RDMA_CM_EVENT_ROUTE_RESOLVED);
	make_qp(id);
	DO(rdma_connect(id, &param));
	await_event_in_storm(s, RDMA_CM_EVENT_ESTABLISHED);
	DO(rdma_disconnect(id));
	await_event_in_storm(s, RDMA_CM_EVENT_DISCONNECTED);
	rdma_destroy_qp(id);
	DO(rdma_destroy_id(id));
}

static void connect_often_in_storm(struct scene *s)
{
	pthread_t self = pthread_self(), thread;
	int i;

	atomic_store(&storm_is_over, false);
	meet(s);
	pthread_create(&thread, NULL, send_many_signals, &self);
	for (i = 0; i < N_CONNECTS; i++)
		connect_in_storm(s);
	atomic_store(&storm_is_over, true);
	pthread_join(thread, NULL);
	meet(s);
}

static void storm_with_each_handler(struct scene *s)
{
	with_each_handler(s, connect_often_in_storm);
}

static void accept_often(struct scene *s)
{
	struct rdma_cm_id *listener = listen_here(s, RDMA_PS_TCP, N_CONNECTS), *child;
	int i;

	for (i = 0; i < N_CONNECTS; i++) {
		child = accept_request(s);
		expect_event(s, RDMA_CM_EVENT_DISCONNECTED);
		DO(rdma_disconnect(child));
		close_id(child);
	}
	meet(s);
	close_id(listener);
}

static void accept_often_twice(struct scene *s)
{
	run_twice(s, accept_often);
}

const struct scenario signal_scenarios[] = {
	LOCAL("signals-resolve", resolve_of_synchronous_id, SLOW, "rdma_resolve_addr"),
	PAIR("signals-connect", connect_of_synchronous_id, accept_late_twice, 0, "rdma_connect"),
	PAIR("signals-request", ask_twice, get_request_with_each_handler, 0, "rdma_get_request"),
	PAIR("signals-accept", establish_late_twice, accept_with_each_handler, 0, "rdma_accept"),
	PAIR("signals-disconnect", disconnect_with_each_handler, disconnect_late_twice, 0,
	     "rdma_disconnect"),
	LOCAL("signals-endpoint", endpoint_with_each_handler, SLOW, "rdma_create_ep"),
	PAIR("signals-completions", completions_with_each_handler, complete_late_twice, 0,
	     "rdma_get_recv_comp, rdma_get_send_comp"),
	LOCAL("signals-destroy", destroy_with_each_handler, 0,
	      "rdma_destroy_id, which waits for an acknowledgement"),
	PAIR("signals-send_many_signals", storm_with_each_handler, accept_often_twice, 0,
	     "a signal each millisecond during connections"),
	LAST_SCENARIO,
};
