/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Holds many connections, without queue pairs, while something happens to cmportd. For either
 * library.
 *
 *   hold server ADDRESS PORT
 *   hold client ADDRESS PORT COUNT MORE
 *
 * The client makes COUNT connections and prints "held". At SIGUSR1 it begins MORE, prints "begun",
 * and "complete" when they are established; at the next SIGUSR1 it disconnects all and prints
 * "ended". If MORE is "leave", it exits after "held" without disconnecting. The server accepts; it
 * prints its counts on SIGUSR1 and exits on SIGTERM. If an event is unexpected, or an expected one
 * does not arrive, the process prints it and exits with status 1. Queue pairs are numbered from
 * $HOLD_QPN.
 */
#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <rdma/rdma_cma.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#define RESOLVE_MS 5000
#define QUIET_MS   150000  /* longer than any retransmission takes */
#define HELD_MS	   3600000 /* after that, the caller has ended */
#define IDS_MAX	   4096
#define BACKLOG	   1024
#define FIRST_QPN  0x1000
#define QPN_RANGE  2048
#define QPN_RANGES 8000 /* QPNs have 24 bits */

static struct rdma_event_channel *channel;
static struct rdma_cm_id *ids[IDS_MAX];
static unsigned int n_ids, n_established, n_disconnected;
static struct sockaddr_storage address;
static int signals;

static void die_with_event(const char *what)
{
	printf("hold: %s: %s\n", what, strerror(errno));
	exit(1);
}

/* Two runs with one peer must not use the same numbers, unless intended. */
static uint32_t first_qpn(void)
{
	const char *first = getenv("HOLD_QPN");

	return first ? (uint32_t)atoi(first)
		     : FIRST_QPN + ((uint32_t)getpid() % QPN_RANGES) * QPN_RANGE;
}

static struct rdma_conn_param next_param(void)
{
	static uint32_t n;

	return (struct rdma_conn_param){ .qp_num = first_qpn() + n++, .retry_count = 7 };
}

static void begin_one(void)
{
	if (rdma_create_id(channel, &ids[n_ids], NULL, RDMA_PS_TCP))
		die_with_event("rdma_create_id");
	if (rdma_resolve_addr(ids[n_ids], NULL, (struct sockaddr *)&address, RESOLVE_MS))
		die_with_event("rdma_resolve_addr");
	n_ids++;
}

static void connect_now(struct rdma_cm_id *id)
{
	struct rdma_conn_param param = next_param();

	if (rdma_connect(id, &param))
		die_with_event("rdma_connect");
}

static void accept_now(struct rdma_cm_id *id)
{
	struct rdma_conn_param param = next_param();

	if (rdma_accept(id, &param))
		die_with_event("rdma_accept");
}

static void handle_event(enum rdma_cm_event_type type, int status, struct rdma_cm_id *id,
			 bool is_ending)
{
	if (type == RDMA_CM_EVENT_ADDR_RESOLVED) {
		if (rdma_resolve_route(id, RESOLVE_MS))
			die_with_event("rdma_resolve_route");
	} else if (type == RDMA_CM_EVENT_ROUTE_RESOLVED) {
		connect_now(id);
	} else if (type == RDMA_CM_EVENT_CONNECT_REQUEST) {
		accept_now(id);
	} else if (type == RDMA_CM_EVENT_CONNECT_RESPONSE) {
		if (rdma_establish(id))
			die_with_event("rdma_establish");
		n_established++;
	} else if (type == RDMA_CM_EVENT_ESTABLISHED) {
		n_established++;
	} else if (type == RDMA_CM_EVENT_DISCONNECTED && is_ending && status == 0) {
		rdma_disconnect(id); /* a response if the peer disconnected first */
		n_disconnected++;
	} else if (type == RDMA_CM_EVENT_TIMEWAIT_EXIT) {
		if (n_ids == 0) /* a server; the limit is 65,536 connections per process */
			rdma_destroy_id(id);
	} else {
		printf("noticed %s, status %d\n", rdma_event_str(type), status);
		exit(1);
	}
}

/* Return: false after @wait_ms without an event, or on a signal. */
static bool handle_next_event(bool is_ending, int wait_ms)
{
	struct pollfd fds[2] = { { .fd = channel->fd, .events = POLLIN },
				 { .fd = signals, .events = POLLIN } };
	enum rdma_cm_event_type type;
	struct rdma_cm_event *event;
	struct rdma_cm_id *id;
	int status;

	if (poll(fds, 2, wait_ms) <= 0 || (fds[1].revents & POLLIN))
		return false;
	if (rdma_get_cm_event(channel, &event))
		die_with_event("rdma_get_cm_event");
	type = event->event;
	status = event->status;
	id = event->id;
	rdma_ack_cm_event(event);
	handle_event(type, status, id, is_ending);
	return true;
}

/* Return: the signal number. */
static uint32_t take_signal(void)
{
	struct signalfd_siginfo info;

	if (read(signals, &info, sizeof(info)) != sizeof(info)) {
		printf("nothing happened for too long: %u of %u established, %u disconnected\n",
		       n_established, n_ids, n_disconnected);
		exit(1);
	}
	return info.ssi_signo;
}

static void print_counts(const char *what)
{
	printf("%s %u established %u disconnected\n", what, n_established, n_disconnected);
	fflush(stdout);
}

static void connect_until(unsigned int count)
{
	while (n_established < count)
		if (!handle_next_event(false, QUIET_MS))
			take_signal();
}

static void wait_for_signal(void)
{
	while (handle_next_event(false, HELD_MS))
		continue;
	take_signal();
}

static void hold_ids(unsigned int count)
{
	while (n_ids < count)
		begin_one();
	connect_until(count);
	print_counts("held");
}

static int run_client(unsigned int count, unsigned int more)
{
	unsigned int i;

	hold_ids(count);
	wait_for_signal();
	for (i = 0; i < more; i++)
		begin_one();
	print_counts("begun");
	connect_until(count + more);
	print_counts("complete");
	wait_for_signal();
	for (i = 0; i < n_ids; i++)
		if (rdma_disconnect(ids[i]))
			die_with_event("rdma_disconnect");
	while (n_disconnected < n_ids)
		if (!handle_next_event(true, QUIET_MS))
			take_signal();
	print_counts("ended");
	return 0;
}

static int run_server(void)
{
	struct rdma_cm_id *listener;

	if (rdma_create_id(channel, &listener, NULL, RDMA_PS_TCP) ||
	    rdma_bind_addr(listener, (struct sockaddr *)&address) || rdma_listen(listener, BACKLOG))
		die_with_event("rdma_listen");
	print_counts("ready");
	for (;;) {
		while (handle_next_event(true, HELD_MS))
			continue;
		if (take_signal() == SIGTERM)
			break;
		print_counts("count");
	}
	print_counts("ended");
	return 0;
}

static void find_address(const char *name, const char *port)
{
	struct addrinfo hints = { .ai_flags = AI_NUMERICHOST }, *found;

	if (getaddrinfo(name, port, &hints, &found))
		die_with_event("getaddrinfo");
	memcpy(&address, found->ai_addr, found->ai_addrlen);
	freeaddrinfo(found);
}

int main(int argc, char **argv)
{
	sigset_t set;

	if (argc < 4)
		return 2;
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigaddset(&set, SIGTERM);
	sigprocmask(SIG_BLOCK, &set, NULL);
	signals = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
	find_address(argv[2], argv[3]);
	channel = rdma_create_event_channel();
	if (!channel)
		die_with_event("rdma_create_event_channel");
	if (!strcmp(argv[1], "server"))
		return run_server();
	if (argc < 6)
		return 2;
	if (strcmp(argv[5], "leave"))
		return run_client((unsigned int)atoi(argv[4]), (unsigned int)atoi(argv[5]));
	hold_ids((unsigned int)atoi(argv[4]));
	return 0;
}
