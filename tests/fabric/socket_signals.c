/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Signals during calls on sockets that wait, one line each with the result of the call:
 *
 *     socket_signals ADDRESS
 *
 * ADDRESS is the host's own. Run by sockets.py, with stock and with this library. Each call is made
 * in a process of its own, with both ends of its connection: with a handler that was installed with
 * SA_RESTART, with one that was not, and with that one while another has SA_RESTART. After
 * N_SIGNALS signals another thread satisfies the call.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <rdma/rdma_cma.h>
#include <rdma/rsocket.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/select.h>
#include <sys/wait.h>
#include <unistd.h>

#define PORT	   7500
#define N_SIGNALS  3
#define PAUSE_US   75000 /* longer than the first sleep of a call, in which it knows no handlers */
#define BUFFER	   65536
#define TIMEOUT_MS 3000
#define PATIENCE_S 30

/* The ends of a call's connection, and how to satisfy the call. */
struct play {
	struct sockaddr_in addr;
	int listener, client, server; /* sockets; -1: none */
	struct rdma_event_channel *channel;
	struct rdma_cm_id *id; /* a listener that does not accept */
	int pipe[2];
	pthread_t waiting;
	pid_t tid; /* of that thread */
};

static char buffer[BUFFER];

static void die(const char *what)
{
	printf("%s: %s\n", what, strerror(errno));
	exit(1);
}

static struct sockaddr *addr_of(struct play *play)
{
	return (struct sockaddr *)&play->addr;
}

/* --- preparation of the call --------------------------------------------- */

static void begin_listening(struct play *play)
{
	play->listener = rsocket(AF_INET, SOCK_STREAM, 0);
	if (rbind(play->listener, addr_of(play), sizeof(play->addr)) || rlisten(play->listener, 5))
		die("rlisten");
}

static void *connect_it(void *arg)
{
	struct play *play = arg;
	int fd = rsocket(AF_INET, SOCK_STREAM, 0);

	if (rconnect(fd, addr_of(play), sizeof(play->addr)))
		die("rconnect");
	play->client = fd;
	return NULL;
}

static void begin_connected(struct play *play)
{
	pthread_t thread;

	begin_listening(play);
	pthread_create(&thread, NULL, connect_it, play);
	play->server = raccept(play->listener, NULL, NULL);
	pthread_join(thread, NULL);
	if (play->server < 0)
		die("raccept");
}

static void begin_full(struct play *play)
{
	begin_connected(play);
	while (rsend(play->client, buffer, sizeof(buffer), MSG_DONTWAIT) > 0)
		;
	/* A shorter send might still fit. */
	while (rsend(play->client, buffer, 1, MSG_DONTWAIT) > 0)
		;
}

static void begin_datagrams(struct play *play)
{
	play->server = rsocket(AF_INET, SOCK_DGRAM, 0);
	if (rbind(play->server, addr_of(play), sizeof(play->addr)))
		die("rbind");
}

static void begin_unanswered(struct play *play)
{
	play->channel = rdma_create_event_channel();
	if (!play->channel || rdma_create_id(play->channel, &play->id, NULL, RDMA_PS_TCP) ||
	    rdma_bind_addr(play->id, addr_of(play)) || rdma_listen(play->id, 1))
		die("rdma_listen");
	play->client = rsocket(AF_INET, SOCK_STREAM, 0);
}

static void begin_mixed(struct play *play)
{
	begin_connected(play);
	if (pipe(play->pipe))
		die("pipe");
}

/* --- how each call is satisfied ------------------------------------------ */

static void then_nothing(struct play *play)
{
	(void)play;
}

static void then_connect(struct play *play)
{
	connect_it(play);
}

static void then_send(struct play *play)
{
	rsend(play->client, "x", 1, 0);
}

static void then_read(struct play *play)
{
	while (rrecv(play->server, buffer, sizeof(buffer), 0) > 0)
		;
}

static void then_refuse(struct play *play)
{
	struct rdma_cm_event *event;

	if (!rdma_get_cm_event(play->channel, &event))
		rdma_reject(event->id, NULL, 0);
}

static void then_write(struct play *play)
{
	if (write(play->pipe[1], "x", 1) != 1)
		die("write");
}

/* --- the calls ----------------------------------------------------------- */

static ssize_t call_raccept(struct play *play)
{
	return raccept(play->listener, NULL, NULL) < 0 ? -1 : 0;
}

static ssize_t call_rconnect(struct play *play)
{
	return rconnect(play->client, addr_of(play), sizeof(play->addr));
}

/* Prints the result of a later poll, after EINTR of rconnect(). */
static ssize_t call_rconnect_and_rpoll(struct play *play)
{
	struct pollfd fd = { .fd = play->client, .events = POLLOUT };
	int error = 0;
	socklen_t bytes = sizeof(error);

	if (!call_rconnect(play) || errno != EINTR)
		return -1;
	while (rpoll(&fd, 1, -1) < 0 && errno == EINTR)
		;
	rgetsockopt(play->client, SOL_SOCKET, SO_ERROR, &error, &bytes);
	errno = error;
	return -1;
}

static ssize_t call_rrecv(struct play *play)
{
	char c;

	return rrecv(play->server, &c, 1, 0);
}

static ssize_t call_rsend(struct play *play)
{
	static char big[4 * BUFFER];

	return rsend(play->client, big, sizeof(big), 0) < 0 ? -1 : 1;
}

static ssize_t call_rpoll(struct play *play)
{
	struct pollfd fd = { .fd = play->server, .events = POLLIN };

	return rpoll(&fd, 1, -1);
}

static ssize_t call_rpoll_for_room(struct play *play)
{
	struct pollfd fd = { .fd = play->client, .events = POLLOUT };

	return rpoll(&fd, 1, -1);
}

static ssize_t call_rpoll_of_listener(struct play *play)
{
	struct pollfd fd = { .fd = play->listener, .events = POLLIN };

	return rpoll(&fd, 1, -1);
}

static ssize_t call_rpoll_with_pipe(struct play *play)
{
	struct pollfd fds[2] = {
		{ .fd = play->server, .events = POLLIN },
		{ .fd = play->pipe[0], .events = POLLIN },
	};

	return rpoll(fds, 2, -1);
}

static ssize_t call_rpoll_with_timeout(struct play *play)
{
	struct pollfd fd = { .fd = play->server, .events = POLLIN };

	return rpoll(&fd, 1, TIMEOUT_MS);
}

static ssize_t call_rpoll_of_pipe(struct play *play)
{
	struct pollfd fd = { .fd = play->pipe[0], .events = POLLIN };

	return rpoll(&fd, 1, -1);
}

static ssize_t call_rselect(struct play *play)
{
	fd_set set;

	FD_ZERO(&set);
	FD_SET(play->server, &set);
	return rselect(play->server + 1, &set, NULL, NULL, NULL);
}

static ssize_t call_rselect_with_timeout(struct play *play)
{
	struct timeval timeout = { .tv_sec = TIMEOUT_MS / 1000 };
	fd_set set;

	FD_ZERO(&set);
	FD_SET(play->server, &set);
	return rselect(play->server + 1, &set, NULL, NULL, &timeout);
}

static const struct {
	const char *name;
	void (*begin)(struct play *play);
	ssize_t (*call)(struct play *play);
	void (*then)(struct play *play);
} plays[] = {
	{ "raccept", begin_listening, call_raccept, then_connect },
	{ "rconnect", begin_unanswered, call_rconnect, then_refuse },
	{ "rconnect, then rpoll", begin_unanswered, call_rconnect_and_rpoll, then_refuse },
	{ "rrecv", begin_connected, call_rrecv, then_send },
	{ "rsend", begin_full, call_rsend, then_read },
	{ "rrecv of a datagram", begin_datagrams, call_rrecv, then_nothing },
	{ "rpoll", begin_connected, call_rpoll, then_send },
	{ "rpoll for room", begin_full, call_rpoll_for_room, then_read },
	{ "rpoll of a listener", begin_listening, call_rpoll_of_listener, then_connect },
	{ "rpoll with a pipe", begin_mixed, call_rpoll_with_pipe, then_write },
	{ "rpoll of a pipe alone", begin_mixed, call_rpoll_of_pipe, then_write },
	{ "rpoll with a timeout", begin_connected, call_rpoll_with_timeout, then_nothing },
	{ "rselect", begin_connected, call_rselect, then_send },
	{ "rselect with a timeout", begin_connected, call_rselect_with_timeout, then_nothing },
};

/* --- signals ------------------------------------------------------------- */

static const struct {
	const char *name;
	int flags;   /* of the handler of the signals that are sent */
	bool others; /* whether another handler has the opposite flag */
} handlers[] = {
	{ "with SA_RESTART", SA_RESTART, false },
	{ "without SA_RESTART", 0, false },
	{ "with SA_RESTART, another without", SA_RESTART, true },
	{ "without SA_RESTART, another with", 0, true },
};

static size_t number; /* row of plays[] */

static void on_signal(int signal)
{
	(void)signal;
}

static void handle_signals(size_t h)
{
	struct sigaction action = { .sa_handler = on_signal, .sa_flags = handlers[h].flags };

	sigaction(SIGUSR1, &action, NULL);
	action.sa_flags ^= SA_RESTART;
	if (handlers[h].others)
		sigaction(SIGUSR2, &action, NULL);
}

/* Return: how often a thread that sleeps has begun to sleep, or -1 if it does not sleep. */
static long sleeps_of(pid_t tid)
{
	char path[64], line[128];
	bool is_asleep = false;
	long n = -1;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/self/task/%d/status", tid);
	file = fopen(path, "r");
	if (!file)
		die(path);
	while (fgets(line, sizeof(line), file)) {
		is_asleep |= strncmp(line, "State:\tS", 8) == 0;
		sscanf(line, "voluntary_ctxt_switches: %ld", &n);
	}
	fclose(file);
	return is_asleep ? n : -1;
}

static void await_sleep(pid_t tid)
{
	long before, n = -1;

	do {
		before = n;
		usleep(PAUSE_US);
		n = sleeps_of(tid);
	} while (n < 0 || n != before);
}

static void *interrupt(void *arg)
{
	struct play *play = arg;

	for (int i = 0; i < N_SIGNALS; i++) {
		await_sleep(play->tid);
		pthread_kill(play->waiting, SIGUSR1);
	}
	await_sleep(play->tid);
	plays[number].then(play);
	return NULL;
}

static void play_one(size_t h, struct sockaddr_in addr)
{
	struct play play = { .listener = -1, .client = -1, .server = -1 };
	pthread_t thread;
	ssize_t result;

	play.addr = addr;
	play.addr.sin_port = htons((uint16_t)(PORT + number * 8 + h));
	play.waiting = pthread_self();
	play.tid = gettid();
	plays[number].begin(&play);
	handle_signals(h);
	pthread_create(&thread, NULL, interrupt, &play);
	result = plays[number].call(&play);
	if (result < 0)
		printf("%s\n", strerrorname_np(errno));
	else
		printf("%zd\n", result);
	fflush(stdout);
	_exit(0);
}

/* --- one process each ---------------------------------------------------- */

struct child {
	pid_t pid;
	int output;
};

static struct child begin_child(size_t h, struct sockaddr_in addr)
{
	int ends[2];
	struct child child;

	if (pipe(ends))
		die("pipe");
	child.pid = fork();
	if (!child.pid) {
		dup2(ends[1], STDOUT_FILENO);
		close(ends[0]);
		close(ends[1]);
		alarm(PATIENCE_S);
		play_one(h, addr);
	}
	close(ends[1]);
	child.output = ends[0];
	return child;
}

static void end_child(struct child child, size_t h)
{
	char said[128] = "";
	ssize_t n = 0, more;
	int status;

	while (n < (ssize_t)sizeof(said) - 1 &&
	       (more = read(child.output, said + n, sizeof(said) - 1 - (size_t)n)) > 0)
		n += more;
	close(child.output);
	waitpid(child.pid, &status, 0);
	said[strcspn(said, "\n")] = '\0';
	if (WIFSIGNALED(status))
		snprintf(said, sizeof(said), "%s",
			 WTERMSIG(status) == SIGALRM ? "does not return"
						     : strsignal(WTERMSIG(status)));
	printf("%s, %s: %s\n", plays[number].name, handlers[h].name, said);
	fflush(stdout);
}

#define LENGTH(rows) (sizeof(rows) / sizeof((rows)[0]))

int main(int argc, char **argv)
{
	struct sockaddr_in addr = { .sin_family = AF_INET };
	struct child children[LENGTH(plays)][LENGTH(handlers)];

	if (argc != 2 || inet_pton(AF_INET, argv[1], &addr.sin_addr) != 1) {
		fprintf(stderr, "usage: socket_signals ADDRESS\n");
		return 2;
	}
	for (number = 0; number < LENGTH(plays); number++)
		for (size_t h = 0; h < LENGTH(handlers); h++)
			children[number][h] = begin_child(h, addr);
	for (number = 0; number < LENGTH(plays); number++)
		for (size_t h = 0; h < LENGTH(handlers); h++)
			end_child(children[number][h], h);
	return 0;
}
