/* SPDX-License-Identifier: BSD-2-Clause */
/* Parity: processes that end without taking their connections down. */
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>

#include "steps.h"

#define REQUEST_WAIT_MS 20000

/* Run a side's part in a process of its own, which never cleans up: it ends by a signal, or by
 * exit() if that is 0. */
static void in_doomed_process(struct scene *s, void (*part)(struct scene *), int number)
{
	int status;
	pid_t child = fork();

	if (!child) {
		open_channel(s);
		part(s);
		if (number)
			raise(number);
		exit(0);
	}
	if (child < 0 || waitpid(child, &status, 0) != child)
		give_up("doomed process: %s", strerror(errno));
	SAY("process ended %s", WIFSIGNALED(status) ? "by a signal" : "by itself");
}

static void connect_only(struct scene *s)
{
	dial(s);
	meet(s);
}

static void send_request_only(struct scene *s)
{
	struct rdma_conn_param param = usual_param("soon dead");
	struct rdma_cm_id *id = dial_ready(s, RDMA_PS_TCP);

	param.qp_num = unused_qpn();
	DO(rdma_connect(id, &param));
	meet(s);
}

static void accept_only(struct scene *s)
{
	listen_here(s, RDMA_PS_TCP, 0);
	answer(s);
	meet(s);
}

static void take_request_only(struct scene *s)
{
	listen_here(s, RDMA_PS_TCP, 0);
	wait_request(s);
}

/* The request stays in the queue. */
static void let_request_wait(struct scene *s)
{
	struct pollfd waiting = { .events = POLLIN };

	listen_here(s, RDMA_PS_TCP, 0);
	waiting.fd = s->channel->fd;
	if (poll(&waiting, 1, REQUEST_WAIT_MS) != 1)
		give_up("no request within %d ms", REQUEST_WAIT_MS);
}

static void ask_to_disconnect_only(struct scene *s)
{
	DO(rdma_disconnect(dial(s)));
}

static void client_exits(struct scene *s)
{
	in_doomed_process(s, connect_only, 0);
	meet(s);
}

static void client_is_killed(struct scene *s)
{
	in_doomed_process(s, connect_only, SIGKILL);
	meet(s);
}

static void client_is_interrupted(struct scene *s)
{
	in_doomed_process(s, connect_only, SIGINT);
	meet(s);
}

static void client_is_killed_while_it_waits(struct scene *s)
{
	in_doomed_process(s, send_request_only, SIGKILL);
	meet(s);
}

static void client_is_killed_disconnecting(struct scene *s)
{
	in_doomed_process(s, ask_to_disconnect_only, SIGKILL);
	meet(s);
}

static void client_exits_with_a_request(struct scene *s)
{
	in_doomed_process(s, send_request_only, 0);
	meet(s);
}

static void server_exits(struct scene *s)
{
	in_doomed_process(s, accept_only, 0);
	meet(s);
}

static void server_is_killed(struct scene *s)
{
	in_doomed_process(s, accept_only, SIGKILL);
	meet(s);
}

static void server_is_interrupted(struct scene *s)
{
	in_doomed_process(s, accept_only, SIGINT);
	meet(s);
}

static void server_is_killed_with_a_request(struct scene *s)
{
	in_doomed_process(s, take_request_only, SIGKILL);
	meet(s);
}

static void server_is_killed_with_a_request_waiting(struct scene *s)
{
	in_doomed_process(s, let_request_wait, SIGKILL);
	meet(s);
}

static void server_exits_with_a_request(struct scene *s)
{
	in_doomed_process(s, take_request_only, 0);
	meet(s);
}

static void watch_client(struct scene *s)
{
	struct rdma_cm_id *listener = listen_here(s, RDMA_PS_TCP, 0), *child = answer(s);

	meet(s);
	take_event(s);
	meet(s);
	DO(rdma_disconnect(child));
	close_id(child);
	close_id(listener);
}

static void watch_disconnecting_client(struct scene *s)
{
	struct rdma_cm_id *listener = listen_here(s, RDMA_PS_TCP, 0), *child = answer(s);

	take_event(s);
	meet(s);
	DO(rdma_disconnect(child));
	show_quiet(s->channel);
	close_id(child);
	close_id(listener);
}

static void watch_request(struct scene *s)
{
	struct rdma_cm_id *listener = listen_here(s, RDMA_PS_TCP, 0), *child = wait_request(s);
	struct rdma_conn_param param = usual_param("late");

	meet(s);
	meet(s);
	show_quiet(s->channel);
	param.qp_num = unused_qpn();
	DO(rdma_accept(child, &param));
	close_id(child);
	close_id(listener);
}

static void watch_server(struct scene *s)
{
	struct rdma_cm_id *id = dial(s);

	meet(s);
	take_event(s);
	meet(s);
	DO(rdma_disconnect(id));
	show_quiet(s->channel);
	close_id(id);
}

static void watch_reply(struct scene *s)
{
	struct rdma_cm_id *id = dial_ready(s, RDMA_PS_TCP);
	struct rdma_conn_param param = usual_param("anybody?");

	make_qp(id);
	DO(rdma_connect(id, &param));
	take_event(s);
	show_qp_state(id);
	meet(s);
	close_id(id);
}

/* The port of a dead process is free, and its connections do not disturb the next one. */
static void server_is_followed_by_another(struct scene *s)
{
	struct rdma_cm_id *listener;

	in_doomed_process(s, accept_only, SIGKILL);
	meet(s);
	open_channel(s);
	listener = listen_here(s, RDMA_PS_TCP, 0);
	close_id(answer(s));
	close_id(listener);
}

static void connect_to_both(struct scene *s)
{
	struct rdma_cm_id *first = dial(s), *second;

	meet(s);
	take_event(s);
	meet(s);
	DO(rdma_disconnect(first));
	second = dial(s);
	take_event(s);
	DO(rdma_disconnect(second));
	close_id(second);
	close_id(first);
}

const struct scenario exit_scenarios[] = {
	PAIR("exit-client", client_exits, watch_client, BARE, "a connected client exits"),
	PAIR("exit-client-killed", client_is_killed, watch_client, BARE,
	     "a connected client is killed"),
	PAIR("exit-client-request", client_exits_with_a_request, watch_request, BARE,
	     "a client exits while it waits for a reply"),
	PAIR("exit-client-interrupted", client_is_interrupted, watch_client, BARE,
	     "a connected client gets Ctrl-C"),
	PAIR("exit-client-request-killed", client_is_killed_while_it_waits, watch_request, BARE,
	     "a client is killed while it waits for a reply"),
	PAIR("exit-client-disconnecting", client_is_killed_disconnecting,
	     watch_disconnecting_client, BARE, "a client is killed right after it disconnected"),
	PAIR("exit-server-interrupted", watch_server, server_is_interrupted, BARE,
	     "a connected server gets Ctrl-C"),
	PAIR("exit-server-request-killed", watch_reply, server_is_killed_with_a_request, BARE,
	     "a server is killed with a request in its hands"),
	PAIR("exit-server-request-waiting", watch_reply, server_is_killed_with_a_request_waiting,
	     BARE, "a server is killed before it took a request"),
	PAIR("exit-server", watch_server, server_exits, BARE, "a connected server exits"),
	PAIR("exit-server-killed", watch_server, server_is_killed, BARE,
	     "a connected server is killed"),
	PAIR("exit-server-request", watch_reply, server_exits_with_a_request, BARE,
	     "a server exits with a request in its hands"),
	PAIR("exit-restart", connect_to_both, server_is_followed_by_another, BARE,
	     "a server is killed and followed by another on its port"),
	LAST_SCENARIO,
};
