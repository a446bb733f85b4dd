/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Output of purecm explain for exchanges with known faults: lost messages and slow programs,
 * observed at either end or on a wire before losses. It may be incomplete, but not wrong.
 */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "tools/purecm/advice.h"
#include "tools/purecm/flow.h"

#define N_SEEDS	    20000
#define EVENTS_MAX  512
#define MS	    UINT64_C(1000000)
#define MRA_MS	    69000
#define SENDS_MAX   16
#define REJ_TIMEOUT 4
#define ABOUT_MS    20 /* a faster program is not slow */

static const struct mad_gid gids[FLOW_ENDS] = {
	{ .raw = { [10] = 0xff, 0xff, 10, 0, 0, 1 } },
	{ .raw = { [10] = 0xff, 0xff, 10, 0, 0, 2 } },
};

static unsigned int seed;

static unsigned int below(unsigned int n)
{
	return (unsigned int)rand_r(&seed) % n;
}

/* --- an exchange ---------------------------------------------------------- */

enum does {
	ARRIVES,
	RESENDS, /* if its message is still unanswered */
	ACTS,	 /* a program */
};

struct event {
	uint64_t at_ns;
	enum does does;
	enum flow_end end;
	enum cm_attr attr;
};

/* The message that an end retransmits. */
struct pending {
	enum cm_attr attr; /* 0: none */
	unsigned int n_sends;
	uint64_t resend_ns;
};

static struct exchange {
	struct event event[EVENTS_MAX];
	unsigned int n_events;
	uint64_t now_ns;
	struct flows *flows;

	/* The parameters, chosen by the seed. */
	bool is_linux[FLOW_ENDS];
	unsigned int loss_percent, slow_ms[FLOW_ENDS], close_ms, gives_up_ms, delay_us;
	int seen_at;	/* an end; or -1: before losses */
	bool is_traced; /* by a tracer, not captured */
	bool repeats;	/* the network duplicates packets, and delays them by up to 15 ms */

	struct pending pending[FLOW_ENDS];
	bool has_req, has_rep, has_rtu, has_drep, has_dreq, is_over;
	bool is_lost[CM_ATTR_APR + 1], is_mra_lost[FLOW_ENDS];
} ex;

static void plan(uint64_t after_ns, enum does does, enum flow_end end, enum cm_attr attr)
{
	if (ex.n_events < EVENTS_MAX)
		ex.event[ex.n_events++] = (struct event){ ex.now_ns + after_ns, does, end, attr };
}

static enum observation_way way_of(enum flow_end from)
{
	if (!ex.is_traced || ex.seen_at < 0)
		return WAY_UNKNOWN;
	return ex.seen_at == (int)from ? WAY_OUT : WAY_IN;
}

static void observe(enum flow_end from, enum cm_attr attr)
{
	struct observation seen = {
		.time_ns = ex.now_ns + 1, .src = gids[from], .dst = gids[!from], .way = way_of(from)
	};
	struct flow_step step;
	struct cm_msg msg;

	cm_msg_init(&msg, attr, 1);
	msg.rtu.local_comm_id = from == FLOW_ACTIVE ? 7 : 8;
	if (attr != CM_ATTR_REQ)
		msg.rtu.remote_comm_id = from == FLOW_ACTIVE ? 8 : 7;
	if (attr == CM_ATTR_MRA)
		msg.mra.message = from == FLOW_ACTIVE ? CM_ANSWERED_REP : CM_ANSWERED_REQ;
	if (attr == CM_ATTR_REJ) {
		msg.rej.reason = REJ_TIMEOUT;
		msg.rej.message = CM_ANSWERED_OTHER;
		msg.rej.remote_comm_id = 0;
	}
	cm_msg_encode(&msg, seen.mad);
	ck_assert_int_eq(flows_take(ex.flows, &seen, &msg, &step), 0);
}

/* The network may duplicate a packet. */
static void deliver(enum flow_end from, enum cm_attr attr)
{
	do {
		plan(ex.delay_us * 1000 + below(ex.repeats ? 15000000 : 100000), ARRIVES,
		     (enum flow_end) !from, attr);
	} while (ex.repeats && !below(4));
}

static void send(enum flow_end from, enum cm_attr attr)
{
	const bool is_lost = below(100) < ex.loss_percent;

	if (ex.seen_at != (int)!from)
		observe(from, attr);
	if (is_lost && attr == CM_ATTR_MRA)
		ex.is_mra_lost[from] = true;
	else if (is_lost)
		ex.is_lost[attr] = true;
	else
		deliver(from, attr);
}

/* Linux waits longer. */
static void send_pending(enum flow_end end, enum cm_attr attr)
{
	static const unsigned int intervals_ms[] = { 1000, 1000, 1000, 1000, 2000, 4000 };
	struct pending *pending = &ex.pending[end];
	unsigned int wait_ms, n;

	if (pending->attr != attr)
		*pending = (struct pending){ .attr = attr };
	n = pending->n_sends++;
	wait_ms = intervals_ms[n < 5 ? n : 5];
	if (ex.is_linux[end])
		wait_ms = attr == CM_ATTR_REQ ? 6100 : 4100;
	pending->resend_ns = ex.now_ns + wait_ms * MS;
	plan(wait_ms * MS, RESENDS, end, attr);
	send(end, attr);
}

static void resend(enum flow_end end, enum cm_attr attr)
{
	struct pending *pending = &ex.pending[end];

	if (pending->attr != attr || pending->resend_ns > ex.now_ns || ex.is_over)
		return;
	if (pending->n_sends == SENDS_MAX)
		ex.is_over = true;
	else
		send_pending(end, attr);
}

static void take_mra(enum flow_end end)
{
	struct pending *pending = &ex.pending[end];

	if (pending->attr != CM_ATTR_REQ && pending->attr != CM_ATTR_REP)
		return;
	pending->resend_ns = ex.now_ns + MRA_MS * MS;
	plan(MRA_MS * MS, RESENDS, end, pending->attr);
}

/* For a REQ at the server, a REP at the client: answered by the program. */
static void take_request(enum flow_end end, enum cm_attr attr, bool *has, bool is_answered)
{
	const bool is_first = !*has;

	*has = true;
	if (is_first)
		plan(ex.slow_ms[end] * MS, ACTS, end, attr);
	if (ex.slow_ms[end] && !is_answered && (!is_first || ex.is_linux[end]))
		send(end, CM_ATTR_MRA);
}

static void arrive(enum flow_end end, enum cm_attr attr)
{
	if (attr == CM_ATTR_REQ) {
		take_request(end, attr, &ex.has_req, ex.pending[end].attr || ex.has_rtu);
	} else if (attr == CM_ATTR_REP) {
		const bool was_confirmed = ex.has_rep && ex.pending[end].attr != CM_ATTR_REQ;

		if (ex.pending[end].attr == CM_ATTR_REQ)
			ex.pending[end].attr = 0;
		take_request(end, attr, &ex.has_rep, ex.has_rtu);
		if (was_confirmed && ex.has_rtu)
			send(end, CM_ATTR_RTU);
	} else if (attr == CM_ATTR_RTU) {
		if (ex.pending[end].attr == CM_ATTR_REP)
			ex.pending[end].attr = 0;
	} else if (attr == CM_ATTR_DREQ) {
		ex.pending[end].attr = 0;
		if (ex.has_drep)
			send(end, CM_ATTR_DREP);
		else if (!ex.has_dreq)
			plan(ex.close_ms * MS, ACTS, end, attr);
		ex.has_dreq = true;
	} else if (attr == CM_ATTR_DREP) {
		ex.pending[end].attr = 0;
	} else if (attr == CM_ATTR_MRA) {
		take_mra(end);
	}
}

/* The program answers received messages. The client disconnects after a while. */
static void act(enum flow_end end, enum cm_attr attr)
{
	if (attr == CM_ATTR_REQ) {
		send_pending(end, CM_ATTR_REP);
	} else if (attr == CM_ATTR_REP) {
		ex.has_rtu = true;
		send(end, CM_ATTR_RTU);
		plan((below(3000) + 100) * MS, ACTS, end, CM_ATTR_RTU);
	} else if (attr == CM_ATTR_RTU) {
		send_pending(end, CM_ATTR_DREQ);
	} else if (attr == CM_ATTR_DREQ) {
		ex.has_drep = true;
		send(end, CM_ATTR_DREP);
	} else if (attr == CM_ATTR_REJ && !ex.has_rep) {
		send(end, attr);
		ex.is_over = true;
	}
}

/* A message at an end is observed before that end reacts. */
static void step(const struct event *event)
{
	ex.now_ns = event->at_ns;
	if (event->does == ACTS) {
		if (!ex.is_over)
			act(event->end, event->attr);
	} else if (event->does == RESENDS) {
		resend(event->end, event->attr);
	} else {
		if (ex.seen_at == (int)event->end)
			observe((enum flow_end) !event->end, event->attr);
		if (!ex.is_over)
			arrive(event->end, event->attr);
	}
}

/* So the server has sent a message. */
static void other_connection(void)
{
	struct observation seen = { .time_ns = 1, .src = gids[1], .dst = gids[0] };
	struct flow_step step;
	struct cm_msg msg;

	cm_msg_init(&msg, CM_ATTR_DREP, 1);
	msg.rtu.local_comm_id = 80;
	msg.rtu.remote_comm_id = 70;
	cm_msg_encode(&msg, seen.mad);
	ck_assert_int_eq(flows_take(ex.flows, &seen, &msg, &step), 0);
}

static unsigned int maybe_slow_ms(void)
{
	return below(3) ? 0 : ABOUT_MS + below(below(2) ? 700 : 8000);
}

static void play(unsigned int number)
{
	struct event event;
	unsigned int i, first;

	seed = number;
	memset(&ex, 0, sizeof(ex));
	ex.flows = flows_new(FLOWS_MAX, false);
	ex.now_ns = MS;
	ex.loss_percent = below(3) * 25;
	ex.delay_us = 20 + below(2000);
	ex.seen_at = (int)below(3) - 1;
	ex.is_traced = below(2);
	ex.repeats = !below(3);
	ex.close_ms = maybe_slow_ms();
	for (i = 0; i < FLOW_ENDS; i++) {
		ex.is_linux[i] = below(2);
		ex.slow_ms[i] = maybe_slow_ms();
	}
	if (below(2))
		other_connection();
	send_pending(FLOW_ACTIVE, CM_ATTR_REQ);
	if (!below(4))
		plan((100 + below(5000)) * MS, ACTS, FLOW_ACTIVE, CM_ATTR_REJ);
	while (ex.n_events) {
		for (first = 0, i = 1; i < ex.n_events; i++)
			if (ex.event[i].at_ns < ex.event[first].at_ns)
				first = i;
		event = ex.event[first];
		ex.event[first] = ex.event[--ex.n_events];
		step(&event);
	}
}

/* --- output --------------------------------------------------------------- */

enum answer {
	RIGHT,
	SILENT,
	WRONG,
	N_ANSWERS,
};

static bool is_slow(enum delay_part part)
{
	return (part == DELAY_REQUEST && ex.slow_ms[FLOW_PASSIVE]) ||
	       (part == DELAY_CONFIRM && ex.slow_ms[FLOW_ACTIVE]) ||
	       (part == DELAY_CLOSE && ex.close_ms);
}

static bool has_loss(enum delay_part part)
{
	switch (part) {
	case DELAY_REQUEST:
		return ex.is_lost[CM_ATTR_REQ] || ex.is_lost[CM_ATTR_REP] ||
		       ex.is_mra_lost[FLOW_PASSIVE];
	case DELAY_CONFIRM:
		return ex.is_lost[CM_ATTR_REP] || ex.is_lost[CM_ATTR_RTU] ||
		       ex.is_mra_lost[FLOW_ACTIVE];
	case DELAY_ARRIVAL:
		return ex.is_lost[CM_ATTR_RTU];
	case DELAY_CLOSE:
	case DELAY_N_PARTS:
		break;
	}
	return ex.is_lost[CM_ATTR_DREQ] || ex.is_lost[CM_ATTR_DREP];
}

static enum answer judge_part(const struct flow *flow, enum delay_part part)
{
	switch (delay_cause(flow, part)) {
	case DELAY_NONE:
		return is_slow(part) || has_loss(part) ? SILENT : RIGHT;
	case DELAY_PROGRAM:
		return is_slow(part) ? RIGHT : WRONG;
	case DELAY_LOSS:
		return has_loss(part) ? RIGHT : WRONG;
	case DELAY_EITHER:
		break;
	}
	return is_slow(part) || has_loss(part) ? SILENT : WRONG;
}

/* The text blames a slow program only, or allows for a loss, or reports that it is too early. */
static enum answer judge_advice(const struct advice *advice)
{
	const bool is_open = strstr(advice->cause, "lost") || strstr(advice->cause, "reach") ||
			     strstr(advice->cause, "need not be a failure") ||
			     strstr(advice->cause, "too early");

	if (is_open)
		return SILENT;
	return ex.slow_ms[FLOW_ACTIVE] || ex.slow_ms[FLOW_PASSIVE] || ex.close_ms ? RIGHT : WRONG;
}

START_TEST(no_explanation_is_wrong)
{
	unsigned int n[N_ANSWERS] = { 0 }, number;
	const struct advice *advice;
	enum delay_part part;
	enum answer answer;

	for (number = 1; number <= N_SEEDS; number++) {
		play(number);
		for (uint32_t i = 0; i < flows_count(ex.flows); i++) {
			const struct flow *flow = flows_get(ex.flows, i);
			const struct context context = { ex.flows, flow, ex.now_ns };

			if (flow->end[FLOW_ACTIVE].local_comm_id != 7)
				continue;
			advice = advice_find(&context);
			for (part = 0; part < (advice ? 1 : DELAY_N_PARTS); part++) {
				answer = advice ? judge_advice(advice) : judge_part(flow, part);
				n[answer]++;
				if (answer == WRONG)
					fprintf(stderr, "seed %u, part %d: %s\n", number, part,
						advice ? advice->cause : "");
			}
		}
		flows_free(ex.flows);
	}
	fprintf(stderr, "%u right, %u silent, %u wrong\n", n[RIGHT], n[SILENT], n[WRONG]);
	ck_assert_uint_eq(n[WRONG], 0);
	ck_assert_uint_gt(n[RIGHT], 2 * n[SILENT]);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("delay");
	TCase *tcase = tcase_create("delay");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_set_timeout(tcase, 120);
	tcase_add_test(tcase, no_explanation_is_wrong);
	suite_add_tcase(suite, tcase);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? 1 : 0;
}
