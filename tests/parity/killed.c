/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Parity: programs that are killed together with cmportd. Stock has no such process: its kernel
 * ends the connections of a program; here the cmportd that the next program starts does.
 */
#include <signal.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "doomed.h"
#include "steps.h"

#define DEFAULT_PATH "/run/purecm/cmportd.sock"
#define END_MS	     1000 /* for messages sent on behalf of ended programs to arrive */

/* Return: the process that listens at the socket, or 0 with stock. */
static pid_t pid_of_server(void)
{
	const char *path = getenv("PURECM_SOCKET");
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	struct ucred who = { .pid = 0 };
	socklen_t bytes = sizeof(who);
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s", path ? path : DEFAULT_PATH);
	if (!connect(fd, (struct sockaddr *)&addr, sizeof(addr)))
		getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &bytes);
	close(fd);
	return who.pid;
}

/* The program is stopped, so it cannot look for the next cmportd in between. */
static void kill_both(pid_t program)
{
	pid_t server = pid_of_server();

	if (server)
		kill(server, SIGKILL);
	kill(program, SIGKILL);
}

/* Any activity of the next program will do. */
static void begin_another(struct scene *s)
{
	struct rdma_cm_id *id;

	open_channel(s);
	id = open_id(s, "next", RDMA_PS_TCP);
	DO(rdma_bind_addr(id, (struct sockaddr *)&s->self));
	pause_ms(END_MS);
	close_id(id);
}

static void kill_with_server(struct scene *s, void (*part)(struct scene *))
{
	int status;
	pid_t child = fork();

	if (!child) {
		open_channel(s);
		part(s);
		raise(SIGSTOP);
	}
	if (child < 0 || waitpid(child, &status, WUNTRACED) != child)
		give_up("doomed process: %s", strerror(errno));
	SAY("process %s", WIFSTOPPED(status) ? "stopped" : "ended by itself");
	kill_both(child);
	if (waitpid(child, &status, 0) != child)
		give_up("doomed process: %s", strerror(errno));
	begin_another(s);
	meet(s);
}

static void kill_client(struct scene *s)
{
	kill_with_server(s, connect_only);
}

static void kill_server(struct scene *s)
{
	kill_with_server(s, accept_only);
}

static void kill_waiting_client(struct scene *s)
{
	kill_with_server(s, send_request_only);
}

static void kill_server_with_request(struct scene *s)
{
	kill_with_server(s, take_request_only);
}

static void kill_disconnecting_client(struct scene *s)
{
	kill_with_server(s, ask_to_disconnect_only);
}

/* --- events at the peer -------------------------------------------------- */

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

const struct scenario killed_scenarios[] = {
	PAIR("exit-both-client", kill_client, watch_client, BARE | ALONE,
	     "a connected client is killed with what serves it"),
	PAIR("exit-both-server", watch_server, kill_server, BARE | ALONE,
	     "a connected server is killed with what serves it"),
	PAIR("exit-both-client-request", kill_waiting_client, watch_request, BARE | ALONE,
	     "a client is killed with what serves it while it waits for a reply"),
	PAIR("exit-both-server-request", watch_reply, kill_server_with_request, BARE | ALONE,
	     "a server is killed with what serves it with a request in its hands"),
	PAIR("exit-both-disconnecting", kill_disconnecting_client, watch_disconnecting_client,
	     BARE | ALONE, "a client is killed with what serves it right after it disconnected"),
	LAST_SCENARIO,
};
