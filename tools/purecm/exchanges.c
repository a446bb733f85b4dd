/* SPDX-License-Identifier: BSD-2-Clause */
/* Metrics of connections: see exchanges.h. Each connection is counted for this host's end. */
#include "tools/purecm/exchanges.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/purecm/flow.h"
#include "tools/purecm/metric.h"

#define NS_PER_S    1e9
#define GIVE_UP_NS  UINT64_C(100000000000) /* longer than any peer's CM retransmits a request */
#define REASONS	    64			   /* all reasons defined by IBTA are below */
#define N_BUCKETS   (sizeof(bucket_s) / sizeof(bucket_s[0]))
#define BUCKETS_MAX 16
#define N_TIMES	    3

static const double bucket_s[] = { 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1,
				   0.25,   0.5,	  1,	  2.5,	 5,    10,    30,   60 };
_Static_assert(N_BUCKETS == BUCKETS_MAX, "each bucket has its count");

/* Time from the first message of one kind to the first of another. */
static const struct time_metric {
	const char *name;
	const char *help;
	enum cm_attr from, to;
} times[N_TIMES] = {
	{ "purecm_answer_seconds", "from a REQ to its REP", CM_ATTR_REQ, CM_ATTR_REP },
	{ "purecm_connect_seconds", "from a REQ to the RTU", CM_ATTR_REQ, CM_ATTR_RTU },
	{ "purecm_disconnect_seconds", "from a DREQ to its DREP", CM_ATTR_DREQ, CM_ATTR_DREP },
};

struct histogram {
	uint64_t count[BUCKETS_MAX + 1]; /* the last: above all bounds */
	double sum_s;
};

struct exchanges {
	struct flows *flows;
	uint32_t n_decided; /* number of flows, from the first, that are completely counted */
	struct histogram time[N_TIMES][FLOW_ENDS];
	uint64_t refused[REASONS + 1][FLOW_ENDS][2]; /* by our end; [1]: by us; last: others */
	uint64_t unanswered[FLOW_ENDS];
};

static const char *const side_names[FLOW_ENDS] = {
	[FLOW_ACTIVE] = "active", [FLOW_PASSIVE] = "passive"
};

struct exchanges *exchanges_new(void)
{
	struct exchanges *exchanges = calloc(1, sizeof(*exchanges));

	if (!exchanges)
		return NULL;
	exchanges->flows = flows_new(FLOWS_ROLLING, true);
	if (exchanges->flows)
		return exchanges;
	free(exchanges);
	return NULL;
}

/* --- counting ------------------------------------------------------------- */

static void count_time(struct histogram *histogram, uint64_t ns)
{
	const double s = (double)ns / NS_PER_S;
	size_t i;

	for (i = 0; i < N_BUCKETS && s > bucket_s[i]; i++)
		;
	histogram->count[i]++;
	histogram->sum_s += s;
}

static void count_times(struct exchanges *exchanges, const struct flow *flow, enum cm_attr attr,
			enum flow_end side)
{
	const struct flow_seen *from, *to = flow_seen(flow, attr);
	size_t i;

	for (i = 0; i < N_TIMES; i++) {
		from = flow_seen(flow, times[i].from);
		if (times[i].to == attr && from->count && to->first_ns >= from->first_ns)
			count_time(&exchanges->time[i][side], to->first_ns - from->first_ns);
	}
}

void exchanges_take(struct exchanges *exchanges, const struct observation *observation)
{
	const bool by_us = observation->way == WAY_OUT;
	struct flow_step step;
	struct cm_msg msg;
	enum flow_end side;

	if (!observation_is_cm(observation) || cm_msg_decode(observation->mad, MAD_BYTES, &msg) ||
	    flows_take(exchanges->flows, observation, &msg, &step))
		return;
	if (step.is_copy || step.is_stray || step.nth > 1)
		return;
	side = by_us ? step.from : !step.from;
	count_times(exchanges, step.flow, msg.hdr.attr_id, side);
	if (msg.hdr.attr_id == CM_ATTR_REJ)
		exchanges->refused[msg.rej.reason < REASONS ? msg.rej.reason : REASONS][side]
				  [by_us]++;
}

/* Requests are handled in order: a pending request delays those after it. */
void exchanges_give_up(struct exchanges *exchanges, uint64_t now_ns)
{
	const struct flow *flow;
	bool waits;

	for (; exchanges->n_decided < flows_count(exchanges->flows); exchanges->n_decided++) {
		flow = flows_get(exchanges->flows, exchanges->n_decided);
		waits = flow && flow->outcome == FLOW_ASKED;
		if (waits && flow->last_ns + GIVE_UP_NS > now_ns)
			return;
		if (waits)
			exchanges->unanswered[flow->last_way[FLOW_ACTIVE] == WAY_OUT
						      ? FLOW_ACTIVE
						      : FLOW_PASSIVE]++;
	}
}

/* --- printing ------------------------------------------------------------- */

static void print_histogram(const struct time_metric *metric, enum flow_end side,
			    const struct histogram *histogram)
{
	uint64_t count = 0;
	size_t i;

	for (i = 0; i <= N_BUCKETS; i++) {
		count += histogram->count[i];
		printf("%s_bucket{side=\"%s\",le=\"", metric->name, side_names[side]);
		if (i < N_BUCKETS)
			printf("%g\"} %" PRIu64 "\n", bucket_s[i], count);
		else
			printf("+Inf\"} %" PRIu64 "\n", count);
	}
	printf("%s_sum{side=\"%s\"} %.9g\n%s_count{side=\"%s\"} %" PRIu64 "\n", metric->name,
	       side_names[side], histogram->sum_s, metric->name, side_names[side], count);
}

/* Zero counts are omitted: there are 64 reasons. */
static void print_refused(const struct exchanges *exchanges, unsigned int reason,
			  enum flow_end side, bool by_us)
{
	const uint64_t count = exchanges->refused[reason][side][by_us];

	if (!count)
		return;
	printf("purecm_refusals_total{side=\"%s\",by=\"%s\",reason=\"%u\",", side_names[side],
	       by_us ? "us" : "peer", reason);
	metric_label("text", reason < REASONS ? cm_rej_reason_str((uint16_t)reason) : "another");
	printf("} %" PRIu64 "\n", count);
}

void exchanges_print(const struct exchanges *exchanges)
{
	unsigned int reason;
	enum flow_end side;
	size_t i;

	for (i = 0; i < N_TIMES; i++) {
		metric_begin(times[i].name, "histogram", times[i].help);
		for (side = 0; side < FLOW_ENDS; side++)
			print_histogram(&times[i], side, &exchanges->time[i][side]);
	}
	metric_begin("purecm_refusals_total", "counter",
		     "connections that were refused (REJ), by reason and by whom");
	for (reason = 0; reason <= REASONS; reason++) {
		for (side = 0; side < FLOW_ENDS; side++) {
			print_refused(exchanges, reason, side, false);
			print_refused(exchanges, reason, side, true);
		}
	}
	metric_begin("purecm_unanswered_total", "counter",
		     "requests without any answer in 100 s after the last");
	for (side = 0; side < FLOW_ENDS; side++)
		printf("purecm_unanswered_total{side=\"%s\"} %" PRIu64 "\n", side_names[side],
		       exchanges->unanswered[side]);
}
