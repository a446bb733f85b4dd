/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Many connections at once over a bad network, with the duration of each. Runs with either library;
 * netem.py degrades the network and compares.
 *
 * storm serve ADDR PORT BACKLOG LAZY_MS: accepts requests after a delay, until it is killed storm
 * dial ADDR PORT COUNT [hold]: connects, and ends it all: one line of figures. With hold, waits for
 * a line on standard input in between.
 *
 * Connections have queue pair numbers that do not exist, as only the CM is looked at.
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

#include <rdma/rdma_cma.h>

#define COUNT_MAX   1000
#define RESOLVE_MS  30000
#define PATIENCE_MS 150000
#define QPN	    0x200

struct call {
	struct rdma_cm_id *id;
	int64_t begun_ms;
	int took_ms; /* until it was answered; -1: not yet */
	int ended_ms;
	bool is_established;
};

static struct rdma_event_channel *channel;
static struct addrinfo *at;
static struct call call[COUNT_MAX];
static int count, n_answered, n_ended;
static struct {
	int n;
	int status; /* of the last */
} failures[RDMA_CM_EVENT_TIMEWAIT_EXIT + 1];

static int64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void must(int ret, const char *what)
{
	if (!ret)
		return;
	printf("%s: %s\n", what, strerror(errno));
	exit(1);
}

/* Return: the next event, NULL if none comes. */
static struct rdma_cm_event *next_event(int wait_ms)
{
	struct pollfd wait = { .fd = channel->fd, .events = POLLIN };
	struct rdma_cm_event *event;

	if (poll(&wait, 1, wait_ms) != 1)
		return NULL;
	must(rdma_get_cm_event(channel, &event), "rdma_get_cm_event");
	return event;
}

static struct rdma_conn_param next_param(void)
{
	static uint32_t qpn = QPN;

	return (struct rdma_conn_param){ .retry_count = 7, .rnr_retry_count = 7, .qp_num = qpn++ };
}

/* --- the server ---------------------------------------------------------- */

static void serve_event(struct rdma_cm_event *event)
{
	struct rdma_conn_param param = next_param();
	enum rdma_cm_event_type type = event->event;
	struct rdma_cm_id *id = event->id;

	if (type == RDMA_CM_EVENT_CONNECT_REQUEST && rdma_accept(id, &param))
		type = RDMA_CM_EVENT_CONNECT_ERROR;
	if (type == RDMA_CM_EVENT_DISCONNECTED)
		rdma_disconnect(id);
	rdma_ack_cm_event(event);
	if (type != RDMA_CM_EVENT_CONNECT_REQUEST && type != RDMA_CM_EVENT_ESTABLISHED &&
	    type != RDMA_CM_EVENT_TIMEWAIT_EXIT)
		rdma_destroy_id(id);
}

/* An id in timewait is not destroyed twice: its later events were withdrawn with it. */
static int serve(int backlog, int lazy_ms)
{
	struct rdma_cm_id *listener;
	struct rdma_cm_event *event;

	must(rdma_create_id(channel, &listener, NULL, RDMA_PS_TCP), "rdma_create_id");
	must(rdma_bind_addr(listener, at->ai_addr), "rdma_bind_addr");
	must(rdma_listen(listener, backlog), "rdma_listen");
	puts("listening");
	event = next_event(-1);
	usleep((useconds_t)lazy_ms * 1000);
	while (event) {
		serve_event(event);
		event = next_event(-1);
	}
	return 0;
}

/* --- the client ---------------------------------------------------------- */

static void answered(struct call *of, enum rdma_cm_event_type type, int status)
{
	if (of->took_ms >= 0)
		return;
	of->took_ms = (int)(now_ms() - of->begun_ms);
	of->is_established = type == RDMA_CM_EVENT_CONNECT_RESPONSE;
	n_answered++;
	if (of->is_established)
		return;
	failures[type].n++;
	failures[type].status = status;
}

static void ended(struct call *of)
{
	if (of->ended_ms >= 0 || !of->is_established)
		return;
	of->ended_ms = (int)(now_ms() - of->begun_ms);
	n_ended++;
}

static void dial_event(struct rdma_cm_event *event)
{
	struct rdma_conn_param param = next_param();
	struct call *of = event->id->context;
	int ret = 0;

	switch ((int)event->event) {
	case RDMA_CM_EVENT_ADDR_RESOLVED:
		ret = rdma_resolve_route(event->id, RESOLVE_MS);
		break;
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		of->begun_ms = now_ms();
		ret = rdma_connect(event->id, &param);
		break;
	case RDMA_CM_EVENT_CONNECT_RESPONSE:
		ret = rdma_establish(event->id);
		answered(of, event->event, event->status);
		break;
	case RDMA_CM_EVENT_DISCONNECTED:
		ended(of);
		break;
	case RDMA_CM_EVENT_TIMEWAIT_EXIT:
		break;
	default:
		answered(of, event->event, event->status);
	}
	if (ret)
		answered(of, RDMA_CM_EVENT_CONNECT_ERROR, -errno);
}

static void take_until(const int *n, int wanted)
{
	int64_t until = now_ms() + PATIENCE_MS;
	struct rdma_cm_event *event;

	while (*n < wanted && now_ms() < until) {
		event = next_event(1000);
		if (!event)
			continue;
		dial_event(event);
		rdma_ack_cm_event(event);
	}
}

static void connect_all(void)
{
	int i;

	for (i = 0; i < count; i++) {
		call[i] = (struct call){ .begun_ms = now_ms(), .took_ms = -1, .ended_ms = -1 };
		must(rdma_create_id(channel, &call[i].id, &call[i], RDMA_PS_TCP), "rdma_create_id");
		must(rdma_resolve_addr(call[i].id, NULL, at->ai_addr, RESOLVE_MS),
		     "rdma_resolve_addr");
	}
	take_until(&n_answered, count);
}

static int end_all(void)
{
	int i, n = 0;

	for (i = 0; i < count; i++) {
		if (!call[i].is_established)
			continue;
		n++;
		call[i].begun_ms = now_ms();
		rdma_disconnect(call[i].id);
	}
	take_until(&n_ended, n);
	return n;
}

static int by_size(const void *a, const void *b)
{
	return *(const int *)a - *(const int *)b;
}

static void print_times(const char *name, int *ms, int n)
{
	qsort(ms, (size_t)n, sizeof(*ms), by_size);
	printf("%s=%d %s_median=%d %s_worst=%d ", name, n, name, n ? ms[n / 2] : -1, name,
	       n ? ms[n - 1] : -1);
}

static void report(int n_to_end)
{
	int took[COUNT_MAX], end[COUNT_MAX];
	int i, n = 0, m = 0;

	for (i = 0; i < count; i++) {
		if (call[i].is_established)
			took[n++] = call[i].took_ms;
		if (call[i].ended_ms >= 0)
			end[m++] = call[i].ended_ms;
	}
	print_times("connected", took, n);
	print_times("ended", end, m);
	printf("of=%d unended=%d silent=%d", count, n_to_end - m, count - n_answered);
	for (i = 0; i <= RDMA_CM_EVENT_TIMEWAIT_EXIT; i++)
		if (failures[i].n)
			printf(" %s/%d=%d", rdma_event_str((enum rdma_cm_event_type)i),
			       failures[i].status, failures[i].n);
	putchar('\n');
}

static int dial(bool holds)
{
	char line[16];
	int i, n;

	connect_all();
	if (holds) {
		puts("held");
		if (!fgets(line, sizeof(line), stdin))
			return 1;
	}
	n = end_all();
	report(n);
	for (i = 0; i < count; i++)
		rdma_destroy_id(call[i].id);
	return 0;
}

int main(int argc, char **argv)
{
	struct addrinfo hints = { .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV };

	setvbuf(stdout, NULL, _IOLBF, 0);
	count = argc > 4 ? atoi(argv[4]) : 0;
	if (argc < 5 || count > COUNT_MAX || getaddrinfo(argv[2], argv[3], &hints, &at)) {
		fputs("usage: storm serve ADDR PORT BACKLOG LAZY_MS | dial ADDR PORT COUNT [hold]\n",
		      stderr);
		return 2;
	}
	channel = rdma_create_event_channel();
	if (!channel)
		must(-1, "rdma_create_event_channel");
	if (strcmp(argv[1], "serve") == 0)
		return serve(count, argc > 5 ? atoi(argv[5]) : 0);
	return dial(argc > 5);
}
