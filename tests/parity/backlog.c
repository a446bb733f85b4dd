/* SPDX-License-Identifier: BSD-2-Clause */
/* Parity: more requests than a listener's backlog. */
#include "steps.h"

#define BACKLOG 2
#define CALLS	(BACKLOG + 1)

/*
 * The request that finds the backlog full is ignored, and succeeds when it is retransmitted. Stock
 * retransmits after some 9 s, others sooner: the time is not compared.
 */
#define RETRY_MS  40000
#define PROMPT_MS 50

static void call_more_than_fit(struct scene *s)
{
	struct rdma_conn_param param = usual_param("one of many");
	struct rdma_cm_id *ids[CALLS];
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
	take_each(s, ids, CALLS, RETRY_MS);
	meet(s);
	for (i = 0; i < CALLS; i++)
		close_id(ids[i]);
}

static void accept_with_own_qp(struct rdma_cm_id *child)
{
	struct rdma_conn_param param = usual_param("welcome");

	assign_id_name(child, "child");
	make_qp(child);
	DO(rdma_accept(child, &param));
}

/*
 * Takes the requests in the queue. Each makes room for a retransmitted one, so the queue is checked
 * without delay; an event that is found after a delay proves nothing.
 */
static void take_those_that_fit(struct scene *s, struct rdma_cm_id **ids)
{
	struct rdma_cm_event *events[BACKLOG];
	const int64_t begin = now_ms();
	bool more;
	size_t i;

	for (i = 0; i < BACKLOG; i++)
		events[i] = get_event(s->channel, PATIENCE_MS);
	more = is_ready(s->channel, 0) && now_ms() - begin < PROMPT_MS;
	for (i = 0; i < BACKLOG; i++) {
		show_event(events[i]);
		ids[i] = events[i]->id;
		rdma_ack_cm_event(events[i]);
	}
	SAY("%s", more ? "an event is waiting" : "no event comes");
}

static void take_two_then_one(struct scene *s)
{
	struct rdma_cm_id *listener = listen_here(s, RDMA_PS_TCP, BACKLOG);
	struct rdma_cm_id *ids[CALLS] = { NULL };
	size_t i;

	meet(s);
	take_those_that_fit(s, ids);
	for (i = 0; i < BACKLOG; i++)
		accept_with_own_qp(ids[i]);
	take_each(s, ids, CALLS, RETRY_MS);
	accept_with_own_qp(ids[BACKLOG]);
	take_event(s);
	meet(s);
	for (i = 0; i < CALLS; i++)
		close_id(ids[i]);
	close_id(listener);
}

const struct scenario backlog_scenarios[] = {
	PAIR_LIMIT("backlog-full", call_more_than_fit, take_two_then_one, SLOW, 120,
		   "one request more than the backlog: ignored, then served"),
	LAST_SCENARIO,
};
