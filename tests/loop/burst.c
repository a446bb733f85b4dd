/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * More requests at once than a listener's backlog holds, over the loop-back device.
 *
 * burst WHAT: plays one of the scenarios below. Exit status 0: it succeeded, or it printed "late",
 * since the machine was too busy to judge it. Exit status 1: it printed a difference. loop.py runs
 * this program, and runs it again if it was late.
 */
#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <purecm/purecm.h>
#include <rdma/rdma_cma.h>

#include "tests/loop/device.h"

#define PORT	   "7205"
#define CALLS	   20
#define BACKLOG	   2
#define WAIT_MS	   20000
#define RESOLVE_MS 2000
#define IDLE_MS	   600
#define TAKES_US   5000
#define QUIET_MS   100
#define GAP_MS	   50  /* between two requests that are taken: less than lib/conn/backlog.c has */
#define ALL_MS	   800 /* likewise */

static struct rdma_event_channel *calls, *server;
static struct rdma_cm_id *listener, *call[CALLS];
static unsigned int n_rejected[256];
static int64_t begun_ms; /* when the first request was sent */

static void must(int ret, const char *what)
{
	if (!ret)
		return;
	printf("%s: %s\n", what, strerror(errno));
	exit(1);
}

static int64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static struct rdma_cm_event *next_event(struct rdma_event_channel *channel, int wait_ms)
{
	struct pollfd wait = { .fd = channel->fd, .events = POLLIN };
	struct rdma_cm_event *event;

	if (poll(&wait, 1, wait_ms) != 1)
		return NULL;
	must(rdma_get_cm_event(channel, &event), "rdma_get_cm_event");
	return event;
}

static void expect(enum rdma_cm_event_type type)
{
	struct rdma_cm_event *event = next_event(calls, WAIT_MS);

	if (!event || event->event != type) {
		printf("%s instead of %s\n", event ? rdma_event_str(event->event) : "nothing",
		       rdma_event_str(type));
		exit(1);
	}
	rdma_ack_cm_event(event);
}

static void listen_and_call(struct sockaddr *at)
{
	struct rdma_conn_param param = { .retry_count = 7 };
	int i;

	must(rdma_create_id(server, &listener, NULL, RDMA_PS_TCP), "rdma_create_id");
	must(rdma_bind_addr(listener, at), "rdma_bind_addr");
	must(rdma_listen(listener, BACKLOG), "rdma_listen");
	for (i = 0; i < CALLS; i++) {
		must(rdma_create_id(calls, &call[i], NULL, RDMA_PS_TCP), "rdma_create_id");
		must(rdma_resolve_addr(call[i], NULL, at, RESOLVE_MS), "rdma_resolve_addr");
		expect(RDMA_CM_EVENT_ADDR_RESOLVED);
		must(rdma_resolve_route(call[i], RESOLVE_MS), "rdma_resolve_route");
		expect(RDMA_CM_EVENT_ROUTE_RESOLVED);
	}
	begun_ms = now_ms();
	for (i = 0; i < CALLS; i++) {
		param.qp_num = 0x200 + (uint32_t)i;
		must(rdma_connect(call[i], &param), "rdma_connect");
	}
}

/* Return: whether a request arrived in time; it was rejected. */
static bool refuse_one(int wait_ms)
{
	struct rdma_cm_event *event = next_event(server, wait_ms);

	if (!event)
		return false;
	must(rdma_reject(event->id, NULL, 0), "rdma_reject");
	must(rdma_destroy_id(event->id), "rdma_destroy_id");
	rdma_ack_cm_event(event);
	return true;
}

static void count_rejected(void)
{
	struct rdma_cm_event *event;
	int i;

	for (i = 0; i < CALLS; i++) {
		event = next_event(calls, WAIT_MS);
		if (!event || event->event != RDMA_CM_EVENT_REJECTED) {
			printf("%s is no REJECTED\n",
			       event ? rdma_event_str(event->event) : "nothing");
			exit(1);
		}
		n_rejected[event->status & 0xff]++;
		rdma_ack_cm_event(event);
	}
}

static struct purecm_counters counters(void)
{
	struct purecm_counters n;

	must(purecm_get_counters(&n, sizeof(n)), "purecm_get_counters");
	return n;
}

static void await_received(enum purecm_message message, unsigned int n)
{
	const int64_t until = now_ms() + WAIT_MS;

	while (counters().received[message] < n) {
		if (now_ms() > until) {
			printf("fewer than %u messages %d came\n", n, (int)message);
			exit(1);
		}
		usleep(TAKES_US);
	}
}

/* Return: whether more than a limit has passed; then the library was right to drop requests. */
static bool is_late(int64_t since_ms, int64_t limit_ms)
{
	return now_ms() - since_ms > limit_ms;
}

static int end_late(void)
{
	puts("late");
	return 0;
}

/* --- scenarios ----------------------------------------------------------- */

/*
 * On a busy machine a request may be repeated although it is queued: its listener counts it as a
 * duplicate. A request that was dropped is none when it comes again.
 */
static bool all_repeated_were_queued(void)
{
	const int64_t until = now_ms() + WAIT_MS;
	struct purecm_counters n;

	do {
		n = counters();
		usleep(TAKES_US);
	} while (n.repeated > n.duplicate && now_ms() < until);
	if (n.repeated > n.duplicate)
		printf("%u messages were repeated, %u of them were duplicates\n",
		       (unsigned int)n.repeated, (unsigned int)n.duplicate);
	return n.repeated <= n.duplicate;
}

static int none_has_to_be_repeated_while_the_program_takes_them(void)
{
	int64_t taken_ms = begun_ms;
	bool was_late = false;
	int i;

	for (i = 0; i < CALLS; i++) {
		if (!refuse_one(WAIT_MS)) {
			printf("%d of %d requests came\n", i, CALLS);
			return 1;
		}
		was_late = was_late || is_late(taken_ms, GAP_MS);
		taken_ms = now_ms();
		usleep(TAKES_US);
	}
	if (was_late || is_late(begun_ms, ALL_MS))
		return end_late();
	count_rejected();
	return !all_repeated_were_queued();
}

static int those_beyond_are_dropped_when_the_program_does_nothing(void)
{
	int n = 0;

	usleep(IDLE_MS * 1000);
	while (refuse_one(QUIET_MS))
		n++;
	if (n == BACKLOG)
		return 0;
	if (is_late(begun_ms, ALL_MS + QUIET_MS))
		return end_late();
	printf("%d requests were kept, not %d\n", n, BACKLOG);
	return 1;
}

static int those_beyond_end_unanswered_with_the_listener(void)
{
	struct rdma_cm_event *event;

	await_received(PURECM_REQ, CALLS);
	event = next_event(server, WAIT_MS);
	if (!event)
		return 1;
	must(rdma_destroy_id(event->id), "rdma_destroy_id");
	rdma_ack_cm_event(event);
	if (is_late(begun_ms, 2 * GAP_MS))
		return end_late();
	must(rdma_destroy_id(listener), "rdma_destroy_id");
	listener = NULL;
	count_rejected();
	if (n_rejected[28] == BACKLOG + 1 && n_rejected[8] == CALLS - BACKLOG - 1)
		return 0;
	printf("%u have heard REJ 28, %u REJ 8\n", n_rejected[28], n_rejected[8]);
	return 1;
}

static int one_that_was_given_up_is_not_shown(void)
{
	int i, n = 0;

	for (i = BACKLOG; i < CALLS; i++) {
		must(rdma_destroy_id(call[i]), "rdma_destroy_id");
		call[i] = NULL;
	}
	await_received(PURECM_REJ, CALLS - BACKLOG);
	while (refuse_one(QUIET_MS))
		n++;
	if (n == BACKLOG)
		return 0;
	printf("%d requests, not %d\n", n, BACKLOG);
	return 1;
}

static const struct play {
	const char *name;
	int (*run)(void);
} plays[] = {
#define PLAY(name)          \
	{                   \
#name, name \
	}
	PLAY(none_has_to_be_repeated_while_the_program_takes_them),
	PLAY(those_beyond_are_dropped_when_the_program_does_nothing),
	PLAY(those_beyond_end_unanswered_with_the_listener),
	PLAY(one_that_was_given_up_is_not_shown),
#undef PLAY
};

static int play(int (*run)(void))
{
	struct addrinfo hints = { .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV };
	struct addrinfo *at;
	int i, ret;

	if (getaddrinfo(LOOP_ADDR, PORT, &hints, &at))
		return 1;
	calls = rdma_create_event_channel();
	server = rdma_create_event_channel();
	must(!calls || !server, "rdma_create_event_channel");
	listen_and_call(at->ai_addr);
	freeaddrinfo(at);
	ret = run();
	for (i = 0; i < CALLS; i++)
		if (call[i])
			rdma_destroy_id(call[i]);
	if (listener)
		rdma_destroy_id(listener);
	rdma_destroy_event_channel(calls);
	rdma_destroy_event_channel(server);
	return ret;
}

int main(int argc, char **argv)
{
	size_t i;

	setvbuf(stdout, NULL, _IOLBF, 0);
	for (i = 0; i < sizeof(plays) / sizeof(plays[0]); i++)
		if (argc == 2 && strcmp(argv[1], plays[i].name) == 0)
			return play(plays[i].run);
	fputs("usage: burst WHAT\n", stderr);
	return 2;
}
