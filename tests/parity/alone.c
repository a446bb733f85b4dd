/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Functions that the compared stock library lacks: rdma_resolve_addrinfo(), user events,
 * <purecm/purecm.h>. Linked with this library; alone_lab.py runs it in the lab and checks its
 * output. Arguments: a name of the peer, a port on which nobody listens there, an unused address of
 * the network.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <purecm/purecm.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PATIENCE_MS 20000
#define RESOLVE_MS  4000
#define SILENT_MS   300
#define TRACED_MAX  16

static struct rdma_event_channel *channel;

static void need(int is_good, const char *what)
{
	if (is_good)
		return;
	printf("%s: %s\n", what, strerror(errno));
	exit(1);
}

#define NEED(call) need(!(call), #call)

static struct rdma_cm_id *new_id(void)
{
	struct rdma_cm_id *id;

	NEED(rdma_create_id(channel, &id, NULL, RDMA_PS_TCP));
	return id;
}

static struct rdma_cm_event *wait_event(void)
{
	struct pollfd poller = { .fd = channel->fd, .events = POLLIN };
	struct rdma_cm_event *event;

	errno = ETIMEDOUT;
	need(poll(&poller, 1, PATIENCE_MS) == 1, "an event");
	NEED(rdma_get_cm_event(channel, &event));
	return event;
}

/* Return: its status. */
static int take(const char *what)
{
	struct rdma_cm_event *event = wait_event();
	int status = event->status;

	printf("%s: event %d status %d arg %llu\n", what, event->event, status,
	       event->event == RDMA_CM_EVENT_USER ? (unsigned long long)event->param.arg : 0);
	rdma_ack_cm_event(event);
	return status;
}

static void print_failure_of(struct rdma_cm_id *id)
{
	char text[256] = "nothing";

	purecm_last_failure(id, text, sizeof(text));
	printf("failure: %s\n", text);
}

/* --- names --------------------------------------------------------------------- */

static void resolve(struct rdma_cm_id *id, const char *name, const char *port)
{
	struct rdma_addrinfo *info;

	NEED(rdma_resolve_addrinfo(id, name, port, NULL));
	take("name");
	NEED(rdma_query_addrinfo(id, &info));
	NEED(rdma_resolve_addr(id, NULL, info->ai_dst_addr, RESOLVE_MS));
	rdma_freeaddrinfo(info);
	take("address");
	NEED(rdma_resolve_route(id, RESOLVE_MS));
	take("route");
}

/* --- user events --------------------------------------------------------------- */

static void write_with_lock(struct rdma_cm_id *id, const char *port)
{
	struct rdma_addrinfo *info;

	NEED(rdma_write_cm_event(id, RDMA_CM_EVENT_USER, -5, 41));
	NEED(rdma_resolve_addrinfo(id, "192.0.2.1", port, NULL));
	NEED(rdma_write_cm_event(id, RDMA_CM_EVENT_USER, 6, 43));
	take("first");
	take("second");
	take("third");
	NEED(rdma_query_addrinfo(id, &info));
	rdma_freeaddrinfo(info);
}

/* --- messages ------------------------------------------------------------------ */

static atomic_uint n_traced;
static struct {
	enum purecm_trace_kind kind;
	unsigned int attr_id;
} traced[TRACED_MAX];

static void trace(const struct purecm_trace *step, void *arg)
{
	const unsigned char *mad = step->mad;
	unsigned int i;

	(void)arg;
	if (step->kind == PURECM_TRACE_STATE)
		return;
	i = n_traced++;
	if (i >= TRACED_MAX)
		return;
	traced[i].kind = step->kind;
	traced[i].attr_id = (unsigned int)mad[16] << 8 | mad[17];
}

static void be_rejected(struct rdma_cm_id *id)
{
	struct rdma_conn_param param = { .qp_num = 0x4711, .retry_count = 7 };
	struct purecm_counters counters;
	unsigned int i, n_sent = 0;
	bool is_sent;

	purecm_set_trace(trace, NULL);
	NEED(rdma_connect(id, &param));
	printf("reason: %s\n", purecm_reject_str(take("connect")));
	purecm_set_trace(NULL, NULL);
	for (i = 0; i < n_traced && i < TRACED_MAX; i++) {
		is_sent = traced[i].kind == PURECM_TRACE_SENT;
		n_sent += is_sent;
		printf("%s 0x%x\n", is_sent ? "sent" : "received", traced[i].attr_id);
	}
	NEED(purecm_get_counters(&counters, sizeof(counters)));
	/* More may have been received since: a slow peer answers a REQ twice. */
	printf("counted: sent %d, received %d\n",
	       counters.sent[PURECM_REQ] + counters.repeated == n_sent,
	       counters.received[PURECM_REJ] >= i - n_sent);
}

/* --- failures -------------------------------------------------------------------- */

static void fail(const char *silent)
{
	struct sockaddr_in nowhere = { .sin_family = AF_INET, .sin_port = htons(1) };
	struct rdma_cm_id *id = new_id();

	inet_pton(AF_INET, "192.0.2.1", &nowhere.sin_addr);
	if (!rdma_bind_addr(id, (struct sockaddr *)&nowhere))
		printf("bound\n");
	print_failure_of(id);
	inet_pton(AF_INET, silent, &nowhere.sin_addr);
	NEED(rdma_resolve_addr(id, NULL, (struct sockaddr *)&nowhere, SILENT_MS));
	take("silence");
	print_failure_of(id);
	rdma_destroy_id(id);
}

int main(int argc, char **argv)
{
	struct rdma_cm_id *id;

	if (argc != 4)
		return 2;
	channel = rdma_create_event_channel();
	need(channel != NULL, "rdma_create_event_channel");
	id = new_id();
	resolve(id, argv[1], argv[2]);
	write_with_lock(id, argv[2]);
	be_rejected(id);
	rdma_destroy_id(id);
	fail(argv[3]);
	rdma_destroy_event_channel(channel);
	return 0;
}
