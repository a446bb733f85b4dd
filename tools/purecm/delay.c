/* SPDX-License-Identifier: BSD-2-Clause */
/* See delay.h. */
#include "tools/purecm/delay.h"

#define NS_PER_MS 1e6
#define LONG_MS	  50  /* of shorter times nothing is said */
#define RESEND_MS 900 /* no connection manager retransmits earlier: 1 s purecm, 4.1 s Linux */

static double ms_between(uint64_t from_ns, uint64_t to_ns)
{
	return (double)(int64_t)(to_ns - from_ns) / NS_PER_MS;
}

static bool has(const struct flow *flow, enum cm_attr attr)
{
	return flow_seen(flow, attr)->count;
}

static double first_ms(const struct flow *flow, enum cm_attr from, enum cm_attr to)
{
	return ms_between(flow_seen(flow, from)->first_ns, flow_seen(flow, to)->first_ns);
}

/*
 * An MRA says that the message has arrived, but one may also come with the first message at once,
 * as Linux sends it, and the answer that follows may be a retransmission.
 */
static enum delay_cause cause_after_mra(double wait_ms, double took_ms)
{
	if (took_ms < LONG_MS)
		return DELAY_NONE;
	return wait_ms < RESEND_MS && wait_ms >= took_ms / 2 ? DELAY_PROGRAM : DELAY_EITHER;
}

/* On a traced host all that arrives at an end is seen, and all that it sends. */
static bool is_seen_at(const struct flow *flow, enum flow_end end)
{
	return flow->last_way[end] == WAY_OUT && flow->last_way[!end] == WAY_IN;
}

static enum delay_cause cause_of_program(double took_ms)
{
	return took_ms < LONG_MS ? DELAY_NONE : DELAY_PROGRAM;
}

static enum delay_cause cause_of_request(const struct flow *flow)
{
	const struct flow_seen *req = flow_seen(flow, CM_ATTR_REQ);
	const struct flow_seen *rep = flow_seen(flow, CM_ATTR_REP);
	const double took_ms = ms_between(req->first_ns, rep->first_ns);
	const uint64_t mra_ns = flow->mra_ns[FLOW_PASSIVE];

	if (is_seen_at(flow, FLOW_PASSIVE))
		return cause_of_program(took_ms);
	if (mra_ns && mra_ns < rep->first_ns)
		return cause_after_mra(ms_between(mra_ns, rep->first_ns), took_ms);
	if (req->n_before > 1)
		return DELAY_LOSS;
	if (took_ms >= RESEND_MS) /* an earlier REP may have been lost where it was not seen */
		return DELAY_EITHER;
	return cause_of_program(took_ms);
}

/* A client that has the REP repeats no REQ. An RTU answers a REP that was seen. */
static enum delay_cause cause_of_confirm(const struct flow *flow)
{
	const struct flow_seen *rep = flow_seen(flow, CM_ATTR_REP);
	const struct flow_seen *rtu = flow_seen(flow, CM_ATTR_RTU);
	const double took_ms = ms_between(rep->first_ns, rtu->first_ns);
	const uint64_t mra_ns = flow->mra_ns[FLOW_ACTIVE];

	if (is_seen_at(flow, FLOW_ACTIVE))
		return cause_of_program(took_ms);
	if (mra_ns && mra_ns < rtu->first_ns)
		return cause_after_mra(ms_between(mra_ns, rtu->first_ns), took_ms);
	if (rep->n_before > 1)
		return DELAY_LOSS;
	if (flow_seen(flow, CM_ATTR_REQ)->n_after)
		return DELAY_EITHER;
	return cause_of_program(took_ms);
}

static enum delay_cause cause_of_close(const struct flow *flow)
{
	const struct flow_seen *dreq = flow_seen(flow, CM_ATTR_DREQ);
	const double took_ms = first_ms(flow, CM_ATTR_DREQ, CM_ATTR_DREP);

	if (dreq->n_after)
		return DELAY_LOSS;
	if (dreq->n_before > 1 && took_ms >= LONG_MS &&
	    !is_seen_at(flow, (enum flow_end) !dreq->by))
		return DELAY_EITHER;
	return cause_of_program(took_ms);
}

enum delay_cause delay_cause(const struct flow *flow, enum delay_part part)
{
	switch (part) {
	case DELAY_REQUEST:
		return has(flow, CM_ATTR_REQ) && has(flow, CM_ATTR_REP) ? cause_of_request(flow)
									: DELAY_NONE;
	case DELAY_CONFIRM:
		return has(flow, CM_ATTR_REP) && has(flow, CM_ATTR_RTU) ? cause_of_confirm(flow)
									: DELAY_NONE;
	case DELAY_ARRIVAL:
		return flow_seen(flow, CM_ATTR_REP)->n_after ? DELAY_LOSS : DELAY_NONE;
	case DELAY_CLOSE:
		return has(flow, CM_ATTR_DREQ) && has(flow, CM_ATTR_DREP) ? cause_of_close(flow)
									  : DELAY_NONE;
	case DELAY_N_PARTS:
		break;
	}
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
			seen->count, ms_between(seen->first_ns, seen->last_ns));
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
		fprintf(out, " Open for %.1f ms.", ms_between(rtu->first_ns, dreq->first_ns));
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
