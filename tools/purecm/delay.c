/* SPDX-License-Identifier: BSD-2-Clause */
/* See delay.h. */
#include "base/clock.h"
#include "tools/purecm/flow.h"

#define LONG_MS	  50  /* of shorter times nothing is said */
#define RESEND_MS 900 /* no connection manager retransmits earlier: 1 s purecm, 4.1 s Linux */

static bool has(const struct flow *flow, enum cm_attr attr)
{
	return flow_seen(flow, attr)->count;
}

static double first_ms(const struct flow *flow, enum cm_attr from, enum cm_attr to)
{
	return clock_span_ms(flow_seen(flow, from)->first_ns, flow_seen(flow, to)->first_ns);
}

/* On a traced host all that arrives at an end is seen, and all that it sends. */
static bool is_seen_at(const struct flow *flow, enum flow_end end)
{
	return flow->last_way[end] == WAY_OUT && flow->last_way[!end] == WAY_IN;
}

/*
 * An MRA says that the message has arrived, but one may also come with the first message at once,
 * as Linux sends it, and the answer that follows may be a retransmission.
 */
static enum delay_cause cause_after_mra(double wait_ms, double took_ms)
{
	return wait_ms < RESEND_MS && wait_ms >= took_ms / 2 ? DELAY_PROGRAM : DELAY_EITHER;
}

/* A REP may be a retransmission of one that was not seen. An RTU answers a REP that was seen. */
static enum delay_cause cause_of_opening(const struct flow *flow, enum cm_attr from,
					 enum cm_attr to, enum flow_end answers)
{
	const double took_ms = first_ms(flow, from, to);
	const uint64_t mra_ns = flow->mra_ns[answers];
	const uint64_t answer_ns = flow_seen(flow, to)->first_ns;

	if (is_seen_at(flow, answers))
		return DELAY_PROGRAM;
	if (mra_ns && mra_ns < answer_ns)
		return cause_after_mra(clock_span_ms(mra_ns, answer_ns), took_ms);
	if (flow_seen(flow, from)->n_before > 1)
		return DELAY_LOSS;
	if (to == CM_ATTR_REP ? took_ms >= RESEND_MS : flow_seen(flow, CM_ATTR_REQ)->n_after)
		return DELAY_EITHER;
	return DELAY_PROGRAM;
}

static enum delay_cause cause_of_closing(const struct flow *flow)
{
	const struct flow_seen *dreq = flow_seen(flow, CM_ATTR_DREQ);

	if (dreq->n_before > 1 && !is_seen_at(flow, (enum flow_end) !dreq->by))
		return DELAY_EITHER;
	return DELAY_PROGRAM;
}

static bool is_long(const struct flow *flow, enum cm_attr from, enum cm_attr to)
{
	return has(flow, from) && has(flow, to) && first_ms(flow, from, to) >= LONG_MS;
}

enum delay_cause delay_cause(const struct flow *flow, enum delay_part part)
{
	if (part == DELAY_REQUEST && is_long(flow, CM_ATTR_REQ, CM_ATTR_REP))
		return cause_of_opening(flow, CM_ATTR_REQ, CM_ATTR_REP, FLOW_PASSIVE);
	if (part == DELAY_CONFIRM && is_long(flow, CM_ATTR_REP, CM_ATTR_RTU))
		return cause_of_opening(flow, CM_ATTR_REP, CM_ATTR_RTU, FLOW_ACTIVE);
	if (part == DELAY_ARRIVAL && flow_seen(flow, CM_ATTR_REP)->n_after)
		return DELAY_LOSS;
	if (part == DELAY_CLOSE && flow_seen(flow, CM_ATTR_DREQ)->n_after)
		return DELAY_LOSS;
	if (part == DELAY_CLOSE && is_long(flow, CM_ATTR_DREQ, CM_ATTR_DREP))
		return cause_of_closing(flow);
	return DELAY_NONE;
}

/* --- sentences ------------------------------------------------------------ */

/* clang-format off */
static const char *const sentences[DELAY_N_PARTS][DELAY_EITHER + 1] = {
	[DELAY_REQUEST] = {
		[DELAY_PROGRAM] = " Until the REP the server's program took the time.",
		[DELAY_LOSS] = " Nothing answered the earlier ones: they or the answers were lost.",
		[DELAY_EITHER] = " Until the REP the server's program took the time, or messages "
				 "were lost.",
	},
	[DELAY_CONFIRM] = {
		[DELAY_PROGRAM] = " Until the RTU the client's program took the time.",
		[DELAY_LOSS] = " Nothing answered the earlier ones: they or the RTUs were lost.",
		[DELAY_EITHER] = " Until the RTU the client's program took the time, or messages "
				 "were lost.",
	},
	[DELAY_ARRIVAL] = {
		[DELAY_LOSS] = " The REP was sent again after the RTU, so an RTU was lost.",
	},
	[DELAY_CLOSE] = {
		[DELAY_PROGRAM] = " The program at the other end took the time to disconnect, too.",
		[DELAY_LOSS] = " It was sent again after the DREP, so a DREP was lost.",
		[DELAY_EITHER] = " DREQs or DREPs were lost, or the program at the other end took "
				 "the time to disconnect, too.",
	},
};
/* clang-format on */

static void print_cause(const struct flow *flow, enum delay_part part, FILE *out)
{
	const char *sentence = sentences[part][delay_cause(flow, part)];

	fputs(sentence ? sentence : "", out);
}

static void print_repeats(const struct flow *flow, enum cm_attr attr, FILE *out)
{
	const struct flow_seen *seen = flow_seen(flow, attr);

	if (seen->count > 1)
		fprintf(out, " The %s was sent %u times in %.1f ms.", cm_msg_layout(attr)->name,
			seen->count, clock_span_ms(seen->first_ns, seen->last_ns));
}

static void print_connecting(const struct flow *flow, FILE *out)
{
	if (!has(flow, CM_ATTR_REQ) || !has(flow, CM_ATTR_REP) || !has(flow, CM_ATTR_RTU)) {
		fputs("Its beginning was not seen completely.", out);
		return;
	}
	fprintf(out,
		"Connected in %.1f ms: %.1f ms from the REQ to the REP, and %.1f ms to the RTU.",
		first_ms(flow, CM_ATTR_REQ, CM_ATTR_RTU), first_ms(flow, CM_ATTR_REQ, CM_ATTR_REP),
		first_ms(flow, CM_ATTR_REP, CM_ATTR_RTU));
	print_repeats(flow, CM_ATTR_REQ, out);
	print_cause(flow, DELAY_REQUEST, out);
	print_repeats(flow, CM_ATTR_REP, out);
	print_cause(flow, DELAY_CONFIRM, out);
	print_cause(flow, DELAY_ARRIVAL, out);
	if (has(flow, CM_ATTR_MRA))
		fputs(" One end asked the other to wait longer (MRA).", out);
}

static void print_closing(const struct flow *flow, FILE *out)
{
	const struct flow_seen *rtu = flow_seen(flow, CM_ATTR_RTU);
	const struct flow_seen *dreq = flow_seen(flow, CM_ATTR_DREQ);

	if (flow->outcome != FLOW_CLOSED || !dreq->count) {
		fputs(" It was still open at the end of the trace.", out);
		return;
	}
	if (rtu->count)
		fprintf(out, " Open for %.1f ms.", clock_span_ms(rtu->first_ns, dreq->first_ns));
	fprintf(out, " Disconnected by the %s", dreq->by == FLOW_ACTIVE ? "client" : "server");
	if (has(flow, CM_ATTR_DREP))
		fprintf(out, ", answered in %.1f ms", first_ms(flow, CM_ATTR_DREQ, CM_ATTR_DREP));
	putc('.', out);
	print_repeats(flow, CM_ATTR_DREQ, out);
	print_cause(flow, DELAY_CLOSE, out);
}

void delay_print(const struct flow *flow, FILE *out)
{
	print_connecting(flow, out);
	print_closing(flow, out);
}
