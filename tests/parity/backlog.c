/* SPDX-License-Identifier: BSD-2-Clause */
/* Parity: more requests than a listener takes. */
#include "steps.h"

#define BACKLOG 2
#define CALLS	(BACKLOG + 1)

/* The request that finds the backlog full is ignored, and succeeds by being repeated. */
#define RETRY_MS 20000

static void call_more_than_fit(struct scene *s)
{
	struct rdma_conn_param param = usual_param("one of many");
	struct rdma_cm_id *ids[CALLS];
	struct rdma_cm_event *event;
	size_t i;

	meet(s);
	for (i = 0; i < CALLS; i++) {
		ids[i] = open_id(s, "client", RDMA_PS_TCP);
		resolve(s, ids[i], s->port);
		make_qp(ids[i]);
		DO(rdma_connect(ids[i], &param));
		pause_ms(QUIET_MS);
	}
	meet(s);
	for (i = 0; i < CALLS; i++) {
		event = wait_event_for(s->channel, RETRY_MS);
		SAY("this was call %d", event->id == ids[i] ? (int)i : -1);
		rdma_ack_cm_event(event);
	}
	meet(s);
	for (i = 0; i < CALLS; i++)
		close_id(ids[i]);
}

static struct rdma_cm_id *accept_within(struct scene *s, int patience_ms)
{
	struct rdma_conn_param param = usual_param("welcome");
	struct rdma_cm_event *event = wait_event_for(s->channel, patience_ms);
	struct rdma_cm_id *child = event->id;

	name_id(child, "child");
	rdma_ack_cm_event(event);
	make_qp(child);
	DO(rdma_accept(child, &param));
	rdma_ack_cm_event(wait_event(s->channel));
	return child;
}

static void take_two_then_one(struct scene *s)
{
	struct rdma_cm_id *listener = listen_here(s, RDMA_PS_TCP, BACKLOG);
	struct rdma_cm_event *event[BACKLOG];
	struct rdma_conn_param param = usual_param("welcome");
	struct rdma_cm_id *ids[CALLS];
	size_t i;

	meet(s);
	for (i = 0; i < BACKLOG; i++)
		event[i] = wait_event(s->channel);
	show_quiet(s->channel);
	for (i = 0; i < BACKLOG; i++) {
		ids[i] = event[i]->id;
		name_id(ids[i], "child");
		rdma_ack_cm_event(event[i]);
		make_qp(ids[i]);
		DO(rdma_accept(ids[i], &param));
		take_event(s);
	}
	ids[BACKLOG] = accept_within(s, RETRY_MS);
	meet(s);
	for (i = 0; i < CALLS; i++)
		close_id(ids[i]);
	close_id(listener);
}

const struct scenario backlog_scenarios[] = {
	PAIR_LIMIT("backlog-full", call_more_than_fit, take_two_then_one, SLOW, 60,
		   "one request more than the backlog: ignored, then served"),
	LAST_SCENARIO,
};
