/* SPDX-License-Identifier: BSD-2-Clause */
/* Parity: lookups that are lost, late, retransmitted, too many, or for an unknown service. */
#include <arpa/inet.h>
#include <signal.h>
#include <sys/wait.h>

#include "steps.h"

#define BACKLOG 2
#define LOOKUPS (BACKLOG + 1)

/*
 * Longer than the first retransmission interval of either library (2 s or 4.1 s), and between two
 * retransmissions: stock takes one that crosses the answer for a new lookup.
 */
#define SLOW_MS	    4800
#define NO_HOST_MAC "02:00:00:00:00:99"
#define REPEATED_MS 12000

static struct rdma_cm_id *look_up_as(struct scene *s, const char *label)
{
	struct rdma_conn_param param = { .private_data = "where?", .private_data_len = 6 };
	struct rdma_cm_id *id = open_id(s, label, RDMA_PS_UDP);

	resolve(s, id, s->port);
	make_qp(id);
	DO(rdma_connect(id, &param));
	return id;
}

static int print_listening(struct rdma_cm_id *child)
{
	struct rdma_conn_param param = { .private_data = "here", .private_data_len = 4 };

	make_qp(child);
	return rdma_accept(child, &param);
}

/* --- the usual client: look up, and print the events --------------------- */

static void look_up_once(struct scene *s)
{
	struct rdma_cm_id *id;

	meet(s);
	id = look_up_as(s, "client");
	take_event(s);
	show_quiet(s->channel);
	meet(s);
	close_id(id);
}

static void listen_to(struct scene *s, struct sockaddr *addr)
{
	struct rdma_cm_id *listener = open_id(s, "listener", RDMA_PS_UDP);
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
	listen_to(s, numeric(s->family == AF_INET ? "::" : "0.0.0.0", s->port));
}

static void listen_on_own_address(struct scene *s)
{
	struct rdma_cm_id *listener = open_id(s, "listener", RDMA_PS_UDP), *child;

	DO(rdma_bind_addr(listener, at(&s->self, s->port)));
	DO(rdma_listen(listener, 0));
	meet(s);
	child = wait_request(s);
	show_id(child);
	DO(print_listening(child));
	meet(s);
	close_id(child);
	close_id(listener);
}

static void reject_without_data(struct scene *s)
{
	struct rdma_cm_id *listener = listen_here(s, RDMA_PS_UDP, 0), *child = wait_request(s);

	DO(rdma_reject(child, NULL, 0));
	meet(s);
	close_id(child);
	close_id(listener);
}

/* A retransmitted lookup is the same one while the answer is pending. */
static void answer_slowly(struct scene *s)
{
	struct rdma_cm_id *listener = listen_here(s, RDMA_PS_UDP, 0), *child = wait_request(s);

	pause_ms(SLOW_MS);
	show_quiet(s->channel);
	DO(print_listening(child));
	show_quiet(s->channel);
	meet(s);
	close_id(child);
	close_id(listener);
}

static void answer_without_parameters(struct scene *s)
{
	struct rdma_cm_id *listener = listen_here(s, RDMA_PS_UDP, 0), *child = wait_request(s);

	make_qp(child);
	DO(rdma_accept(child, NULL));
	meet(s);
	close_id(child);
	close_id(listener);
}

static void answer_without_a_queue_pair(struct scene *s)
{
	struct rdma_cm_id *listener = listen_here(s, RDMA_PS_UDP, 0), *child = wait_request(s);
	struct rdma_conn_param param = { .qp_num = unused_qpn() };

	DO(rdma_accept(child, &param));
	meet(s);
	close_id(child);
	close_id(listener);
}

/* A listener can answer without a queue pair. */
static void close_listener_first(struct scene *s)
{
	struct rdma_cm_id *listener = listen_here(s, RDMA_PS_UDP, 0), *child = wait_request(s);

	DO(rdma_destroy_id(listener));
	DO(print_listening(child));
	meet(s);
	close_id(child);
}

static void close_listener_unseen(struct scene *s)
{
	struct rdma_cm_id *listener = listen_here(s, RDMA_PS_UDP, 0);

	if (!is_ready(s->channel, PATIENCE_MS))
		give_up("no lookup came");
	DO(rdma_destroy_id(listener));
	show_quiet(s->channel);
	meet(s);
}

/* --- more than the backlog ----------------------------------------------- */

/* Events may come in any order. */
static void show_outcomes(struct scene *s, struct rdma_cm_id **ids)
{
	struct rdma_cm_event *event;
	int status[LOOKUPS] = { 0 };
	size_t i, n;

	for (n = 0; n < LOOKUPS; n++) {
		event = get_event(s->channel, PATIENCE_MS);
		for (i = 0; i < LOOKUPS; i++)
			if (event->id == ids[i])
				status[i] = event->status;
		rdma_ack_cm_event(event);
	}
	for (i = 0; i < LOOKUPS; i++)
		SAY("lookup %zu: status %d", i, status[i]);
}

static void look_up_more_than_fit(struct scene *s)
{
	struct rdma_cm_id *ids[LOOKUPS];
	size_t i;

	meet(s);
	for (i = 0; i < LOOKUPS; i++) {
		ids[i] = look_up_as(s, "client");
		pause_ms(QUIET_MS);
	}
	meet(s);
	show_outcomes(s, ids);
	show_quiet(s->channel);
	meet(s);
	for (i = 0; i < LOOKUPS; i++)
		close_id(ids[i]);
}

static void answer_those_that_fit(struct scene *s)
{
	struct rdma_cm_id *listener = listen_here(s, RDMA_PS_UDP, BACKLOG), *ids[BACKLOG];
	size_t i;

	meet(s);
	for (i = 0; i < BACKLOG; i++) {
		ids[i] = wait_request(s);
		DO(print_listening(ids[i]));
	}
	show_quiet(s->channel);
	meet(s);
	for (i = 0; i < BACKLOG; i++)
		close_id(ids[i]);
	close_id(listener);
}

/* --- a client that ends -------------------------------------------------- */

static void leave_before_the_answer(struct scene *s)
{
	struct rdma_cm_id *id;

	meet(s);
	id = look_up_as(s, "client");
	meet(s);
	close_id(id);
	meet(s);
}

static void answer_after_the_client_left(struct scene *s)
{
	struct rdma_cm_id *listener = listen_here(s, RDMA_PS_UDP, 0), *child = wait_request(s);

	meet(s);
	meet(s);
	show_quiet(s->channel);
	DO(print_listening(child));
	show_quiet(s->channel);
	close_id(child);
	close_id(listener);
}

/* --- a lost answer ------------------------------------------------------- */

/* Packets to the peer's address are lost; the control connection uses another address. */
static void set_neighbour(struct scene *s, bool lost)
{
	char text[INET6_ADDRSTRLEN];
	const void *raw = s->family == AF_INET
				  ? (void *)&((struct sockaddr_in *)&s->peer)->sin_addr
				  : (void *)&((struct sockaddr_in6 *)&s->peer)->sin6_addr;

	inet_ntop(s->family, raw, text, sizeof(text));
	if (lost)
		shell("ip neigh replace %s lladdr %s nud permanent dev eth0", text, NO_HOST_MAC);
	else
		shell("ip neigh del %s dev eth0", text);
}

/* Whether the program gets the retransmitted lookup as a new one. */
static void answer_without_network(struct scene *s)
{
	struct rdma_cm_id *listener = listen_here(s, RDMA_PS_UDP, 0), *first = wait_request(s);
	struct rdma_cm_id *second = NULL;

	set_neighbour(s, true);
	DO(print_listening(first));
	pause_ms(QUIET_MS);
	set_neighbour(s, false);
	SAY("the lookup comes %s", is_ready(s->channel, REPEATED_MS) ? "twice" : "once");
	if (is_ready(s->channel, 0)) {
		second = wait_request(s);
		print_listening(second);
	}
	meet(s);
	if (second)
		close_id(second);
	close_id(first);
	close_id(listener);
}

/* --- processes that end -------------------------------------------------- */

static void in_killed_process(struct scene *s, void (*part)(struct scene *))
{
	int status;
	pid_t child = fork();

	if (!child) {
		open_channel(s);
		part(s);
		raise(SIGKILL);
	}
	if (child < 0 || waitpid(child, &status, 0) != child)
		give_up("killed process: %s", strerror(errno));
}

static void take_lookup_only(struct scene *s)
{
	listen_here(s, RDMA_PS_UDP, 0);
	wait_request(s);
}

static void answer_lookup_only(struct scene *s)
{
	listen_here(s, RDMA_PS_UDP, 0);
	DO(print_listening(wait_request(s)));
}

static void server_is_killed_with_a_lookup(struct scene *s)
{
	in_killed_process(s, take_lookup_only);
	meet(s);
}

static void server_is_killed_after_its_answer(struct scene *s)
{
	in_killed_process(s, answer_lookup_only);
	meet(s);
}

static void look_up_only(struct scene *s)
{
	meet(s);
	look_up_as(s, "client");
	meet(s);
}

static void client_is_killed(struct scene *s)
{
	in_killed_process(s, look_up_only);
	meet(s);
}

static void watch_lookup(struct scene *s)
{
	struct rdma_cm_id *listener = listen_here(s, RDMA_PS_UDP, 0), *child = wait_request(s);

	meet(s);
	meet(s);
	show_quiet(s->channel);
	DO(print_listening(child));
	close_id(child);
	close_id(listener);
}

const struct scenario datagram_odd_scenarios[] = {
	PAIR("datagram-refused-silently", look_up_once, reject_without_data, 0,
	     "a lookup refused without private data"),
	PAIR("datagram-other-family", look_up_once, listen_on_the_other_family, 0,
	     "the listener takes only the other address family"),
	PAIR("datagram-own-address", look_up_once, listen_on_own_address, 0,
	     "the listener is bound to one address"),
	PAIR("datagram-no-parameters", look_up_once, answer_without_parameters, 0,
	     "an answer without parameters"),
	PAIR("datagram-own-qpn", look_up_once, answer_without_a_queue_pair, 0,
	     "an answer with the caller's queue pair number"),
	PAIR("datagram-orphan", look_up_once, close_listener_first, 0,
	     "an answer after the listener was destroyed"),
	PAIR("datagram-unfetched", look_up_once, close_listener_unseen, 0,
	     "a listener destroyed with a lookup that nobody fetched"),
	PAIR("datagram-slow", look_up_once, answer_slowly, SLOW,
	     "an answer that takes its time: the lookup is repeated"),
	PAIR("datagram-backlog", look_up_more_than_fit, answer_those_that_fit, SLOW,
	     "one lookup more than the backlog"),
	PAIR("datagram-left", leave_before_the_answer, answer_after_the_client_left, 0,
	     "the active side is gone before the answer"),
	PAIR_LIMIT("datagram-unheard", look_up_once, answer_without_network, LONG | ALONE, 60,
		   "an answer that is lost"),
	PAIR("exit-server-lookup-killed", look_up_once, server_is_killed_with_a_lookup, BARE,
	     "a server is killed with a lookup in its hands"),
	PAIR("exit-server-lookup-answered", look_up_once, server_is_killed_after_its_answer, BARE,
	     "a server is killed after it answered a lookup"),
	PAIR("exit-client-lookup-killed", client_is_killed, watch_lookup, BARE,
	     "a client is killed while it looks up"),
	LAST_SCENARIO,
};
