/* SPDX-License-Identifier: BSD-2-Clause */
/* A requester's window and round-trip measurement: see congestion.h. */
#include "tools/fabric/verbs/congestion.h"

#include "tools/fabric/verbs/carrier.h"

#define TIMEOUT_UNIT_NS 4096 /* IBTA vol. 1, 9.7.6.1.3 */
#define ROUND_TRIPS_MIN 4    /* minimum number in a timeout */

uint32_t congestion_psns(const struct fab_qp *qp, uint32_t bytes)
{
	uint32_t n = qp->payload_bytes ? bytes / qp->payload_bytes : 1;

	return n ? n : 1;
}

void congestion_reset(struct fab_qp *qp)
{
	const struct carrier *carrier = context_of(qp)->carrier;
	struct fab_send_queue *sq = &qp->sq;

	sq->window = congestion_psns(qp, carrier->window_bytes_start);
	sq->window_slow = congestion_psns(qp, carrier->window_bytes_max);
	sq->window_progress = 0;
	sq->recover_psn = sq->una;
	sq->measured_ns = 0;
	sq->rtt_ns = 0;
}

/* --- the window ---------------------------------------------------------- */

static void grow_window(struct fab_qp *qp, uint32_t n_acked)
{
	uint32_t max = congestion_psns(qp, context_of(qp)->carrier->window_bytes_max);
	struct fab_send_queue *sq = &qp->sq;

	if (sq->window < sq->window_slow) {
		sq->window += n_acked;
	} else {
		sq->window_progress += n_acked;
		if (sq->window_progress >= sq->window) {
			sq->window_progress = 0;
			sq->window++;
		}
	}
	if (sq->window > max)
		sq->window = max;
}

/* All losses in one window count once. */
void congestion_lost(struct fab_qp *qp, bool late)
{
	uint32_t min = congestion_psns(qp, context_of(qp)->carrier->window_bytes_min);
	struct fab_send_queue *sq = &qp->sq;

	if (sq->una >= sq->recover_psn) {
		sq->recover_psn = sq->begun_psn;
		sq->window_slow = sq->window / 2 > min ? sq->window / 2 : min;
		sq->window = sq->window_slow;
		sq->window_progress = 0;
	}
	if (late)
		sq->window = min;
}

/* --- the round trip ------------------------------------------------------ */

static bool is_answered_at_once(const struct fab_packet *packet)
{
	return packet->flags & FAB_ASK_ACK || packet->op == FAB_OP_READ;
}

/* Measures one packet at a time, not a retransmitted one, whose response would be ambiguous. */
void congestion_sent(struct fab_qp *qp, const struct fab_packet *packet)
{
	struct fab_send_queue *sq = &qp->sq;

	if (sq->measured_ns || sq->send_psn < sq->begun_psn || !is_answered_at_once(packet))
		return;
	sq->measured_ns = carrier_now_ns(context_of(qp));
	sq->measured_psn = sq->send_psn;
}

/* RFC 6298, 2.2 and 2.3. */
static void take_round_trip(struct fab_send_queue *sq, uint64_t ns)
{
	uint64_t off_ns = ns > sq->rtt_ns ? ns - sq->rtt_ns : sq->rtt_ns - ns;

	if (!sq->rtt_ns) {
		sq->rtt_ns = ns;
		sq->rtt_deviation_ns = ns / 2;
		return;
	}
	sq->rtt_deviation_ns = (3 * sq->rtt_deviation_ns + off_ns) / 4;
	sq->rtt_ns = (7 * sq->rtt_ns + ns) / 8;
}

/* The local ACK timeout of a queue pair; its exponent must not be 0, which means infinite. */
static uint64_t timeout_ns(const struct fab_qp *qp)
{
	uint64_t min_ns = context_of(qp)->carrier->timeout_ns_min;
	uint64_t ns = (uint64_t)TIMEOUT_UNIT_NS << qp->attr.timeout;

	return ns > min_ns ? ns : min_ns;
}

uint64_t congestion_retry_ns(const struct fab_qp *qp)
{
	uint64_t min_ns = context_of(qp)->carrier->retry_ns_min;
	uint64_t ns = timeout_ns(qp);

	return ns > min_ns ? ns : min_ns;
}

/*
 * A slow path with large buffers loses nothing, but delays packets until retransmissions are
 * useless. A small window is not the cause of long round trips.
 */
static void keep_below_timeout(struct fab_qp *qp)
{
	uint32_t start = congestion_psns(qp, context_of(qp)->carrier->window_bytes_start);

	if (qp->attr.timeout && qp->sq.window >= 2 * start &&
	    qp->sq.rtt_ns > timeout_ns(qp) / ROUND_TRIPS_MIN)
		congestion_lost(qp, false);
}

void congestion_acked(struct fab_qp *qp, uint64_t una)
{
	struct fab_send_queue *sq = &qp->sq;

	grow_window(qp, (uint32_t)(una - sq->una));
	if (!sq->measured_ns || una <= sq->measured_psn)
		return;
	take_round_trip(sq, carrier_now_ns(context_of(qp)) - sq->measured_ns);
	sq->measured_ns = 0;
	keep_below_timeout(qp);
}

uint64_t congestion_patience_ns(const struct fab_qp *qp)
{
	uint64_t min_ns = context_of(qp)->carrier->early_ns_min;
	uint64_t ns = qp->sq.rtt_ns + 4 * qp->sq.rtt_deviation_ns;

	if (!min_ns || !qp->sq.rtt_ns)
		return timeout_ns(qp);
	return ns > min_ns ? ns : min_ns;
}
