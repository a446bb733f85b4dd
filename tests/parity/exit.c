/* SPDX-License-Identifier: BSD-2-Clause */
/* Parity: processes that end without disconnecting. */
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "doomed.h"
#include "steps.h"

#define REQUEST_WAIT_MS 20000
#define N_REQUESTS	3
#define END_MS		1000  /* for messages sent on behalf of ended programs to arrive */
#define PROMPT_MS	12000 /* what ends without a DREQ takes minutes */
#define BY_EXIT		0
#define BY_EXEC		(-1)

static void end_process(int how)
{
	if (how == BY_EXEC)
		execl("/bin/true", "true", NULL);
	else if (how != BY_EXIT)
		raise(how);
	exit(0);
}

/*
 * Runs a side's part in a process of its own, which never cleans up: it ends by a signal, or as
 * BY_* defines.
 */
static void in_doomed_process(struct scene *s, void (*part)(struct scene *), int how)
{
	int status;
	pid_t child = fork();

	if (!child) {
		open_channel(s);
		part(s);
		end_process(how);
	}
	if (child < 0 || waitpid(child, &status, 0) != child)
		give_up("doomed process: %s", strerror(errno));
	SAY("process ended %s", WIFSIGNALED(status) ? "by a signal" : "by itself");
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

/* The other side ends now. A busy host may need seconds to see it. */
static void take_end(struct scene *s)
{
	int64_t begin = now_ms();

	take_event(s);
	SAY("%s", now_ms() - begin < PROMPT_MS ? "promptly" : "late");
}

static void exit_connected_client(struct scene *s)
{
	in_doomed_process(s, connect_only, 0);
	meet(s);
}

static void kill_connected_client(struct scene *s)
{
	in_doomed_process(s, connect_only, SIGKILL);
	meet(s);
}

static void interrupt_client(struct scene *s)
{
	in_doomed_process(s, connect_only, SIGINT);
	meet(s);
}

static void kill_waiting_client(struct scene *s)
{
	in_doomed_process(s, send_request_only, SIGKILL);
	meet(s);
}

static void kill_disconnecting_client(struct scene *s)
{
	in_doomed_process(s, ask_to_disconnect_only, SIGKILL);
	meet(s);
}

static void exit_client_with_request(struct scene *s)
{
	in_doomed_process(s, send_request_only, 0);
	meet(s);
}

static void exit_connected_server(struct scene *s)
{
	in_doomed_process(s, accept_only, 0);
	meet(s);
}

static void kill_connected_server(struct scene *s)
{
	in_doomed_process(s, accept_only, SIGKILL);
	meet(s);
}

static void interrupt_server(struct scene *s)
{
	in_doomed_process(s, accept_only, SIGINT);
	meet(s);
}

static void kill_server_with_request(struct scene *s)
{
	in_doomed_process(s, take_request_only, SIGKILL);
	meet(s);
}

static void kill_server_with_waiting_request(struct scene *s)
{
	in_doomed_process(s, let_request_wait, SIGKILL);
	meet(s);
}

static void exit_server_with_request(struct scene *s)
{
	in_doomed_process(s, take_request_only, 0);
	meet(s);
}

static void watch_client(struct scene *s)
{
	struct rdma_cm_id *listener = listen_here(s, RDMA_PS_TCP, 0), *child = answer(s);

	meet(s);
	take_end(s);
	meet(s);
	DO(rdma_disconnect(child));
	close_id(child);
	close_id(listener);
}

static void watch_disconnecting_client(struct scene *s)
{
	struct rdma_cm_id *listener = listen_here(s, RDMA_PS_TCP, 0), *child = answer(s);

	take_end(s);
	meet(s);
	DO(rdma_disconnect(child));
	show_quiet(s->channel);
	close_id(child);
	close_id(listener);
}

static void watch_server(struct scene *s)
{
	struct rdma_cm_id *id = dial(s);

	meet(s);
	take_end(s);
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
	take_end(s);
	show_qp_state(id);
	meet(s);
	close_id(id);
}

/* --- as soon as the reply is sent ---------------------------------------- */

static void accept_without_rtu(struct scene *s)
{
	struct rdma_conn_param param = usual_param("soon dead");
	struct rdma_cm_id *child;

	listen_here(s, RDMA_PS_TCP, 0);
	child = wait_request(s);
	make_qp(child);
	DO(rdma_accept(child, &param));
	meet(s);
}

static void kill_server_that_replied(struct scene *s)
{
	in_doomed_process(s, accept_without_rtu, SIGKILL);
	meet(s);
}

static void exit_server_that_replied(struct scene *s)
{
	in_doomed_process(s, accept_without_rtu, BY_EXIT);
	meet(s);
}

/*
 * The reply has arrived, but its event is taken after the server's death. The following event is
 * only polled for: stock does not deliver it, and a call would wait forever.
 */
static void ignore_reply(struct scene *s)
{
	struct rdma_cm_id *id = dial_ready(s, RDMA_PS_TCP);
	struct rdma_conn_param param = usual_param("too slow");

	make_qp(id);
	DO(rdma_connect(id, &param));
	if (!is_ready(s->channel, REQUEST_WAIT_MS))
		give_up("no reply within %d ms", REQUEST_WAIT_MS);
	meet(s);
	meet(s);
	pause_ms(END_MS);
	take_event(s);
	show_qp_state(id);
	show_quiet(s->channel);
	close_id(id);
}

/* --- several at once ------------------------------------------------------ */

static struct rdma_cm_id *ask_again(struct scene *s, const char *label)
{
	struct rdma_conn_param param = usual_param(label);
	struct rdma_cm_id *id = open_id(s, label, RDMA_PS_TCP);

	resolve(s, id, s->port);
	param.qp_num = unused_qpn();
	DO(rdma_connect(id, &param));
	return id;
}

/*
 * Five ids: one connected, one disconnected, one waiting for a reply, one resolved, one waiting for
 * an address.
 */
static void enter_each_state(struct scene *s)
{
	struct rdma_conn_param param = usual_param("over");
	struct rdma_cm_id *over;

	dial(s);
	over = open_id(s, "over", RDMA_PS_TCP);
	resolve(s, over, s->port);
	make_qp(over);
	DO(rdma_connect(over, &param));
	expect_event(s, RDMA_CM_EVENT_ESTABLISHED);
	meet(s);
	DO(rdma_disconnect(over));
	expect_event(s, RDMA_CM_EVENT_DISCONNECTED);
	ask_again(s, "waits");
	resolve(s, open_id(s, "resolved", RDMA_PS_TCP), s->port);
	DO(rdma_resolve_addr(open_id(s, "resolving", RDMA_PS_TCP), NULL, beside(s, SILENT, s->port),
			     RESOLVE_MS));
	meet(s);
}

static void kill_client_in_each_state(struct scene *s)
{
	in_doomed_process(s, enter_each_state, SIGKILL);
	meet(s);
}

static void exit_client_in_each_state(struct scene *s)
{
	in_doomed_process(s, enter_each_state, BY_EXIT);
	meet(s);
}

static void watch_each_state(struct scene *s)
{
	struct rdma_cm_id *listener = listen_here(s, RDMA_PS_TCP, 0), *child = answer(s);
	struct rdma_cm_id *over = accept_request(s), *waiting;

	meet(s);
	expect_event(s, RDMA_CM_EVENT_DISCONNECTED);
	DO(rdma_disconnect(over));
	close_id(over);
	waiting = wait_request(s);
	meet(s);
	take_end(s);
	meet(s);
	show_quiet(s->channel);
	close_id(waiting);
	close_id(child);
	close_id(listener);
}

static void let_requests_wait(struct scene *s)
{
	listen_here(s, RDMA_PS_TCP, N_REQUESTS);
	meet(s);
}

static void kill_server_with_requests(struct scene *s)
{
	in_doomed_process(s, let_requests_wait, SIGKILL);
	meet(s);
}

static void exit_server_with_requests(struct scene *s)
{
	in_doomed_process(s, let_requests_wait, BY_EXIT);
	meet(s);
}

/*
 * A request that arrived before the server died is answered then, a later one at once; the answers
 * differ, so let them arrive.
 */
static void watch_replies(struct scene *s)
{
	struct rdma_cm_id *ids[N_REQUESTS] = { dial_ready(s, RDMA_PS_TCP) };
	struct rdma_conn_param param = usual_param("first");
	size_t i;

	param.qp_num = unused_qpn();
	DO(rdma_connect(ids[0], &param));
	ids[1] = ask_again(s, "second");
	ids[2] = ask_again(s, "third");
	show_quiet(s->channel);
	meet(s);
	take_each(s, ids, N_REQUESTS, REQUEST_WAIT_MS);
	meet(s);
	for (i = 0; i < N_REQUESTS; i++)
		close_id(ids[i]);
}

/* --- other ways to end ---------------------------------------------------- */

static void crash_without_core(struct scene *s)
{
	const struct rlimit none = { 0, 0 };

	setrlimit(RLIMIT_CORE, &none);
	connect_only(s);
}

static void crash_client(struct scene *s)
{
	in_doomed_process(s, crash_without_core, SIGSEGV);
	meet(s);
}

static void exec_in_client(struct scene *s)
{
	in_doomed_process(s, connect_only, BY_EXEC);
	meet(s);
}

static void exec_in_server(struct scene *s)
{
	in_doomed_process(s, accept_only, BY_EXEC);
	meet(s);
}

/* The last messages of this host are lost, so the peer must time out. */
static void connect_and_lose_server(struct scene *s)
{
	connect_only(s);
	lose_peer(s);
}

static void kill_client_without_network(struct scene *s)
{
	in_doomed_process(s, connect_and_lose_server, SIGKILL);
	find_peer(s);
	meet(s);
	meet(s);
}

static void disconnect_from_killed_client(struct scene *s)
{
	struct rdma_cm_id *listener = listen_here(s, RDMA_PS_TCP, 0), *child = answer(s);

	meet(s);
	meet(s);
	DO(rdma_disconnect(child));
	take_end(s);
	show_qp_state(child);
	meet(s);
	close_id(child);
	close_id(listener);
}

/* The port of a dead process is free, and its connections do not disturb the next one. */
static void restart_server(struct scene *s)
{
	struct rdma_cm_id *listener;

	in_doomed_process(s, accept_only, SIGKILL);
	meet(s);
	open_channel(s);
	listener = listen_here(s, RDMA_PS_TCP, 0);
	close_id(answer(s));
	close_id(listener);
}

static void connect_to_each_server(struct scene *s)
{
	struct rdma_cm_id *first = dial(s), *second;
	struct rdma_event_channel *of_first = s->channel;

	meet(s);
	take_event(s);
	meet(s);
	DO(rdma_disconnect(first));
	open_channel(s); /* the first one's TIMEWAIT_EXIT may come before the second is connected */
	second = dial(s);
	take_event(s);
	DO(rdma_disconnect(second));
	close_id(second);
	close_id(first);
	rdma_destroy_event_channel(of_first);
}

const struct scenario exit_scenarios[] = {
	PAIR("exit-client", exit_connected_client, watch_client, BARE, "a connected client exits"),
	PAIR("exit-client-killed", kill_connected_client, watch_client, BARE,
	     "a connected client is killed"),
	PAIR("exit-client-request", exit_client_with_request, watch_request, BARE,
	     "a client exits while it waits for a reply"),
	PAIR("exit-client-interrupted", interrupt_client, watch_client, BARE,
	     "a connected client gets Ctrl-C"),
	PAIR("exit-client-request-killed", kill_waiting_client, watch_request, BARE,
	     "a client is killed while it waits for a reply"),
	PAIR("exit-client-disconnecting", kill_disconnecting_client, watch_disconnecting_client,
	     BARE, "a client is killed right after it disconnected"),
	PAIR("exit-server-interrupted", watch_server, interrupt_server, BARE,
	     "a connected server gets Ctrl-C"),
	PAIR("exit-server-request-killed", watch_reply, kill_server_with_request, BARE,
	     "a server is killed with a request in its hands"),
	PAIR("exit-server-request-waiting", watch_reply, kill_server_with_waiting_request, BARE,
	     "a server is killed before it took a request"),
	PAIR("exit-server", watch_server, exit_connected_server, BARE, "a connected server exits"),
	PAIR("exit-server-killed", watch_server, kill_connected_server, BARE,
	     "a connected server is killed"),
	PAIR("exit-server-request", watch_reply, exit_server_with_request, BARE,
	     "a server exits with a request in its hands"),
	PAIR("exit-restart", connect_to_each_server, restart_server, BARE,
	     "a server is killed and followed by another on its port"),
	PAIR("exit-server-replied", ignore_reply, exit_server_that_replied, BARE,
	     "a server exits before its reply is taken"),
	PAIR("exit-server-replied-killed", ignore_reply, kill_server_that_replied, BARE,
	     "a server is killed before its reply is taken"),
	PAIR("exit-client-everywhere", exit_client_in_each_state, watch_each_state, BARE,
	     "a client exits with ids in several states"),
	PAIR("exit-client-everywhere-killed", kill_client_in_each_state, watch_each_state, BARE,
	     "a client is killed with ids in several states"),
	PAIR("exit-server-requests", watch_replies, exit_server_with_requests, BARE,
	     "a server exits before it took any of three requests"),
	PAIR("exit-server-requests-killed", watch_replies, kill_server_with_requests, BARE,
	     "a server is killed before it took any of three requests"),
	PAIR("exit-client-crashed", crash_client, watch_client, BARE,
	     "a connected client gets SIGSEGV"),
	PAIR("exit-client-exec", exec_in_client, watch_client, BARE,
	     "a connected client becomes another program"),
	PAIR("exit-server-exec", watch_server, exec_in_server, BARE,
	     "a connected server becomes another program"),
	PAIR("exit-client-unheard", kill_client_without_network, disconnect_from_killed_client,
	     BARE | ALONE, "a client is killed unheard, and its peer disconnects"),
	LAST_SCENARIO,
};
