/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The measuring side of the connect benchmark: each step is started for all ids, then all their
 * events are awaited. The time of a step is the total divided by the number of ids.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "tools/certify/bench.h"

#define RESOLVE_MS  5000
#define PATIENCE_MS 120000
#define COUNT_MAX   100000

/* Between counts the server destroys its ids; see server.c. */
#define REST_US 500000

/* Small counts are repeated until this number of connections is reached. */
#define AT_LEAST 30

struct batch {
	struct rdma_event_channel *channel;
	struct rdma_cm_id **ids;
	size_t count;
	struct sockaddr_storage peer;
	bool fake_qpn;
};

/* A step: started for one id, and ended by its event, if any. */
struct step {
	const char *name;
	void (*begin)(struct batch *batch, size_t i);
	int event; /* -1: none */
};

static void create_nth_id(struct batch *batch, size_t i)
{
	if (rdma_create_id(batch->channel, &batch->ids[i], NULL, RDMA_PS_TCP))
		bench_die("rdma_create_id number %zu", i);
}

static void resolve_addr(struct batch *batch, size_t i)
{
	if (rdma_resolve_addr(batch->ids[i], NULL, (struct sockaddr *)&batch->peer, RESOLVE_MS))
		bench_die("rdma_resolve_addr number %zu", i);
}

static void resolve_route(struct batch *batch, size_t i)
{
	if (rdma_resolve_route(batch->ids[i], RESOLVE_MS))
		bench_die("rdma_resolve_route number %zu", i);
}

static void create_qp(struct batch *batch, size_t i)
{
	if (!batch->fake_qpn)
		bench_create_qp(batch->ids[i]);
}

static void begin_connect(struct batch *batch, size_t i)
{
	struct rdma_conn_param param = { .retry_count = 7, .rnr_retry_count = 7 };

	if (batch->fake_qpn)
		param.qp_num = bench_fake_qpn();
	if (rdma_connect(batch->ids[i], &param))
		bench_die("rdma_connect number %zu", i);
}

static void begin_disconnect(struct batch *batch, size_t i)
{
	if (rdma_disconnect(batch->ids[i]))
		bench_die("rdma_disconnect number %zu", i);
}

static void destroy_qp(struct batch *batch, size_t i)
{
	if (batch->ids[i]->qp)
		rdma_destroy_qp(batch->ids[i]);
}

static void destroy_id(struct batch *batch, size_t i)
{
	if (rdma_destroy_id(batch->ids[i]))
		bench_die("rdma_destroy_id number %zu", i);
}

static const struct step steps[] = {
	{ "create_id", create_nth_id, -1 },
	{ "resolve_addr", resolve_addr, RDMA_CM_EVENT_ADDR_RESOLVED },
	{ "resolve_route", resolve_route, RDMA_CM_EVENT_ROUTE_RESOLVED },
	{ "create_qp", create_qp, -1 },
	{ "connect", begin_connect, RDMA_CM_EVENT_ESTABLISHED },
	{ "disconnect", begin_disconnect, RDMA_CM_EVENT_DISCONNECTED },
	{ "destroy_qp", destroy_qp, -1 },
	{ "destroy_id", destroy_id, -1 },
};

#define STEPS (sizeof(steps) / sizeof(steps[0]))

/* Return: whether the event ends the step; an event that indicates a failure ends the process. */
static bool ends_step(const struct rdma_cm_event *event, const struct step *step)
{
	errno = 0;
	if ((int)event->event == step->event)
		return true;
	if (event->event == RDMA_CM_EVENT_CONNECT_RESPONSE) {
		if (rdma_establish(event->id))
			bench_die("rdma_establish");
		return true;
	}
	/* Timewait of an earlier id may end while later ones disconnect. */
	if (event->event == RDMA_CM_EVENT_TIMEWAIT_EXIT)
		return false;
	bench_die("%s with status %d during %s", rdma_event_str(event->event), event->status,
		  step->name);
}

static void await_events(struct batch *batch, const struct step *step)
{
	struct pollfd pfd = { .fd = batch->channel->fd, .events = POLLIN };
	struct rdma_cm_event *event;
	size_t ended = 0;

	while (ended < batch->count) {
		errno = 0;
		if (poll(&pfd, 1, PATIENCE_MS) != 1)
			bench_die("%s: %zu of %zu after %d s", step->name, ended, batch->count,
				  PATIENCE_MS / 1000);
		if (rdma_get_cm_event(batch->channel, &event))
			bench_die("rdma_get_cm_event during %s", step->name);
		ended += ends_step(event, step);
		rdma_ack_cm_event(event);
	}
}

/* Adds each step's time in us to total[]. */
static void run_steps(struct batch *batch, double *total)
{
	double begin;
	size_t k, i;

	for (k = 0; k < STEPS; k++) {
		begin = bench_now_us();
		for (i = 0; i < batch->count; i++)
			steps[k].begin(batch, i);
		if (steps[k].event >= 0)
			await_events(batch, &steps[k]);
		total[k] += bench_now_us() - begin;
	}
}

static void measure_steps(struct batch *batch, size_t count)
{
	size_t rounds = count < AT_LEAST ? AT_LEAST / count : 1, i, k;
	double total[STEPS] = { 0 }, sum = 0;

	batch->count = count;
	batch->ids = calloc(count, sizeof(struct rdma_cm_id *));
	if (!batch->ids)
		bench_die("memory for %zu ids", count);
	for (i = 0; i < rounds; i++)
		run_steps(batch, total);
	for (k = 0; k < STEPS; k++) {
		printf("%zu %s %.1f\n", count, steps[k].name, total[k] / (double)(rounds * count));
		sum += total[k];
	}
	printf("%zu all %.1f\n", count, sum / (double)(rounds * count));
	free(batch->ids);
}

/* The first connection opens the device and fills caches, so it is not measured. */
static void warm_up(struct batch *batch)
{
	double unused[STEPS] = { 0 };
	struct rdma_cm_id *id;

	batch->count = 1;
	batch->ids = &id;
	run_steps(batch, unused);
}

int bench_client(const struct bench_options *options)
{
	struct batch batch = { .channel = rdma_create_event_channel(),
			       .fake_qpn = options->fake_qpn };
	const char *next = options->counts;
	unsigned long count;
	char *end;

	if (!batch.channel)
		bench_die("rdma_create_event_channel");
	bench_address(options->address, &batch.peer);
	warm_up(&batch);
	for (; *next; next = *end ? end + 1 : end) {
		count = strtoul(next, &end, 10);
		errno = 0;
		if (end == next || !count || count > COUNT_MAX)
			bench_die("-n takes numbers from 1 to %d, with commas", COUNT_MAX);
		measure_steps(&batch, count);
		if (*end)
			usleep(REST_US);
	}
	rdma_destroy_event_channel(batch.channel);
	return 0;
}
