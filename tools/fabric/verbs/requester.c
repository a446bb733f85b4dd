/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The requester of connected queue pairs, IBTA vol. 1, 9.7: it sends in order, up to a window, and
 * goes back to the oldest unacknowledged packet when one is lost. A read is requested in parts,
 * which limits queued data on both sides. A part that is requested again, completely or its rest,
 * ends where it ended the first time, because a responder may compare.
 *
 * A responder sends one NAK until the missing packet arrives (9.7.5), so nothing reveals the loss
 * of that NAK, or of a retransmission. Where the round trip is known, the requester does not wait
 * for `timeout` (9.7.6.1.3), which is a second in many programs: it retransmits once an
 * acknowledgement is late, which is permitted at any time. Only expiries of `timeout` count as
 * retries, and a short one is lengthened for that: see congestion_retry_ns().
 */
#include "tools/fabric/verbs/ack.h"
#include "tools/fabric/verbs/carrier.h"
#include "tools/fabric/verbs/completion.h"
#include "tools/fabric/verbs/congestion.h"
#include "tools/fabric/verbs/direct.h"
#include "tools/fabric/verbs/held.h"
#include "tools/fabric/verbs/response.h"
#include "tools/fabric/verbs/tick.h"
#include "tools/fabric/verbs/transport.h"
#include "tools/fabric/verbs/window.h"

#define RNR_FOR_EVER 7
#define PARTS	     4		/* of a window, that reads are requested in */
#define DIRECT_BYTES (4u << 20) /* executed at once, while others wait for the lock */

static struct fab_send *send_at(const struct fab_qp *qp, uint32_t i)
{
	return qp->sq.slot[(qp->sq.head + i) % qp->sq.n_max];
}

/* --- timers -------------------------------------------------------------- */

/* The deadline is never later than that of a retry. */
static void set_early_deadline(struct fab_qp *qp, uint64_t now_ns)
{
	struct fab_send_queue *sq = &qp->sq;
	uint64_t ns = congestion_patience_ns(qp) << sq->n_early;

	sq->deadline_ns = sq->retry_ns;
	if (now_ns + ns < sq->retry_ns)
		sq->deadline_ns = now_ns + ns;
}

static void set_deadline(struct fab_qp *qp)
{
	uint64_t now_ns = carrier_now_ns(context_of(qp));
	struct fab_send_queue *sq = &qp->sq;

	sq->deadline_ns = 0;
	sq->n_early = 0;
	if (!is_reliable(qp) || sq->una == sq->send_psn || !qp->attr.timeout)
		return;
	sq->retry_ns = now_ns + congestion_retry_ns(qp);
	set_early_deadline(qp, now_ns);
	tick_start(context_of(qp));
}

static void reset_retries(struct fab_qp *qp)
{
	qp->sq.retries_left = qp->attr.retry_cnt;
	qp->sq.rnr_left = qp->attr.rnr_retry;
	qp->sq.misses_response = false;
	set_deadline(qp);
}

static void go_back(struct fab_qp *qp)
{
	qp->sq.send_psn = qp->sq.una;
	qp->sq.at = 0;
	qp->sq.measured_ns = 0;
}

/* --- sending ------------------------------------------------------------- */

/*
 * Several parts fit into the window, so that the responder has the next request while a part is
 * under way. The number of PSNs is that of the send's first request.
 */
static uint32_t part_psns(const struct fab_qp *qp, const struct fab_send *send)
{
	const struct carrier *carrier = context_of(qp)->carrier;
	uint32_t n = qp->attr.max_rd_atomic < PARTS ? qp->attr.max_rd_atomic : PARTS;
	uint32_t min = congestion_psns(qp, carrier->window_bytes_min / PARTS);
	uint32_t max = congestion_psns(qp, carrier->read_bytes);
	uint32_t part = qp->sq.window / (n ? n : 1);

	if (send->part_psns)
		return send->part_psns;
	if (part < min)
		return min;
	return part < max ? part : max;
}

/* Number of outstanding responses to a send; parts, for a read. */
static uint32_t responses_to(const struct fab_qp *qp, const struct fab_send *send)
{
	uint64_t part = part_psns(qp, send);
	uint64_t from = qp->sq.una, to = qp->sq.send_psn;

	if (from < send->first_psn)
		from = send->first_psn;
	if (to > send->first_psn + send->n_psn)
		to = send->first_psn + send->n_psn;
	if (!has_response(send) || to <= from)
		return 0;
	return (uint32_t)((to - send->first_psn - 1) / part - (from - send->first_psn) / part + 1);
}

static unsigned int responses_awaited(const struct fab_qp *qp)
{
	unsigned int n = 0;
	uint32_t i;

	for (i = 0; i <= qp->sq.at && i < qp->sq.count; i++)
		n += responses_to(qp, send_at(qp, i));
	return n;
}

/* Number of PSNs of the next packet: those of its responses, for a read. */
static uint32_t next_psns(const struct fab_qp *qp, const struct fab_send *send)
{
	uint32_t done = (uint32_t)(qp->sq.send_psn - send->first_psn);
	uint32_t part = part_psns(qp, send);
	uint32_t left = send->n_psn - done;

	if (send->opcode != IBV_WR_RDMA_READ)
		return 1;
	return left < part - done % part ? left : part - done % part;
}

static bool has_begun(const struct fab_qp *qp, const struct fab_send *send)
{
	return qp->sq.begun_psn > send->first_psn;
}

static bool may_send_next(const struct fab_qp *qp, const struct fab_send *send)
{
	const struct fab_send_queue *sq = &qp->sq;
	uint64_t in_flight = sq->send_psn - sq->una;
	bool is_fenced = send->flags & IBV_SEND_FENCE && sq->send_psn == send->first_psn;

	if (qp->attr.qp_state == IBV_QPS_SQD && !has_begun(qp, send))
		return false;
	/* Earlier sends may have to be retransmitted with the key that is invalidated. */
	if (is_local(send))
		return sq->at == 0;
	if (qp->init.qp_type == IBV_QPT_UC)
		return true;
	if (in_flight && in_flight + next_psns(qp, send) > sq->window)
		return false;
	if (in_flight && !has_begun(qp, send) && direct_is_worth_waiting(qp, send))
		return false;
	if (!has_response(send) && !is_fenced)
		return true;
	if (is_fenced)
		return responses_awaited(qp) == 0;
	return responses_awaited(qp) < qp->attr.max_rd_atomic;
}

static void send_packet(struct fab_qp *qp, struct fab_packet *packet, const void *payload)
{
	congestion_sent(qp, packet);
	transport_send(context_of(qp), qp->path, packet, payload);
}

static void send_read(struct fab_qp *qp, struct fab_send *send, struct fab_packet *packet)
{
	uint64_t offset = (qp->sq.send_psn - send->first_psn) * qp->payload_bytes;
	uint64_t most = (uint64_t)next_psns(qp, send) * qp->payload_bytes;
	uint64_t left = send->bytes - offset;

	packet->op = FAB_OP_READ;
	packet->rkey = send->rkey;
	packet->remote_addr = send->remote_addr + offset;
	packet->dma_bytes = (uint32_t)(left < most ? left : most);
	send->part_psns = part_psns(qp, send);
	if ((qp->sq.send_psn - send->first_psn) % send->part_psns)
		qp->sq.rest_psn = qp->sq.send_psn;
	send_packet(qp, packet, NULL);
}

static void send_atomic(struct fab_qp *qp, const struct fab_send *send, struct fab_packet *packet)
{
	packet->op = send->opcode == IBV_WR_ATOMIC_CMP_AND_SWP ? FAB_OP_COMPARE_SWAP
							       : FAB_OP_FETCH_ADD;
	packet->rkey = send->rkey;
	packet->remote_addr = send->remote_addr;
	packet->compare_add = send->compare_add;
	packet->swap = send->swap;
	send_packet(qp, packet, NULL);
}

static void send_flush(struct fab_qp *qp, const struct fab_send *send, struct fab_packet *packet)
{
	packet->op = FAB_OP_FLUSH;
	packet->flush = send->flush;
	packet->rkey = send->rkey;
	packet->remote_addr = send->remote_addr;
	packet->dma_bytes = (uint32_t)send->bind_bytes;
	send_packet(qp, packet, NULL);
}

/* For operations with data. */
static uint8_t op_of(const struct fab_send *send)
{
	if (send->opcode == IBV_WR_SEND || send->opcode == IBV_WR_SEND_WITH_IMM ||
	    send->opcode == IBV_WR_SEND_WITH_INV)
		return FAB_OP_SEND;
	return send->opcode == IBV_WR_ATOMIC_WRITE ? FAB_OP_ATOMIC_WRITE : FAB_OP_WRITE;
}

static void mark_last(struct fab_packet *packet, const struct fab_send *send)
{
	packet->flags |= FAB_LAST | FAB_ASK_ACK;
	if (send->flags & IBV_SEND_SOLICITED)
		packet->flags |= FAB_SOLICITED;
	if (has_imm(send)) {
		packet->flags |= FAB_IMM;
		packet->imm = send->imm;
	}
	if (send->opcode == IBV_WR_SEND_WITH_INV) {
		packet->flags |= FAB_INVALIDATE;
		packet->rkey = send->rkey;
	}
}

/* Within a message: at intervals, at least twice per window, and at the end of the window. */
static bool asks_for_ack(const struct fab_qp *qp, uint32_t n)
{
	uint32_t interval = congestion_psns(qp, context_of(qp)->carrier->ask_ack_bytes);
	const struct fab_send_queue *sq = &qp->sq;

	if (interval > sq->window / 2)
		interval = sq->window / 2 ? sq->window / 2 : 1;
	return n % interval == interval - 1 || sq->send_psn + 1 - sq->una >= sq->window;
}

static enum ibv_wc_status send_data(struct fab_qp *qp, const struct fab_send *send,
				    struct fab_packet *packet)
{
	uint32_t n = (uint32_t)(qp->sq.send_psn - send->first_psn);
	uint64_t offset = (uint64_t)n * qp->payload_bytes;
	uint64_t left = send->bytes - offset;
	enum ibv_wc_status status;
	const void *payload;

	packet->bytes = (uint32_t)(left < qp->payload_bytes ? left : qp->payload_bytes);
	status = transport_gather(qp, send, offset, packet->bytes, &payload);
	if (status != IBV_WC_SUCCESS)
		return status;
	packet->op = op_of(send);
	if (packet->op != FAB_OP_SEND) {
		packet->rkey = send->rkey;
		packet->remote_addr = send->remote_addr;
		packet->dma_bytes = (uint32_t)send->bytes;
	}
	if (n == 0)
		packet->flags |= FAB_FIRST;
	if (n + 1 == send->n_psn)
		mark_last(packet, send);
	else if (asks_for_ack(qp, n))
		packet->flags |= FAB_ASK_ACK;
	send_packet(qp, packet, payload);
	return IBV_WC_SUCCESS;
}

static enum ibv_wc_status carry_out(struct fab_qp *qp, const struct fab_send *send)
{
	if (send->opcode == IBV_WR_BIND_MW ? !window_bind(qp, send)
					   : !window_invalidate(qp, send->rkey))
		return IBV_WC_MW_BIND_ERR;
	send_done(qp, IBV_WC_SUCCESS);
	return IBV_WC_SUCCESS;
}

static enum ibv_wc_status send_next(struct fab_qp *qp, struct fab_send *send)
{
	uint32_t n_psns = next_psns(qp, send);
	enum ibv_wc_status status = IBV_WC_SUCCESS;
	struct fab_packet packet;

	if (is_local(send))
		return carry_out(qp, send);
	transport_header(qp, &packet);
	packet.psn = (uint32_t)qp->sq.send_psn & FAB_PSN_MASK;
	packet.srqn = send->remote_srqn;
	if (send->opcode == IBV_WR_RDMA_READ)
		send_read(qp, send, &packet);
	else if (is_atomic_send(send))
		send_atomic(qp, send, &packet);
	else if (is_flush(send))
		send_flush(qp, send, &packet);
	else
		status = send_data(qp, send, &packet);
	if (status != IBV_WC_SUCCESS)
		return status;
	qp->sq.send_psn += n_psns;
	if (qp->sq.begun_psn < qp->sq.send_psn)
		qp->sq.begun_psn = qp->sq.send_psn;
	if (qp->sq.send_psn == send->first_psn + send->n_psn)
		qp->sq.at++;
	return IBV_WC_SUCCESS;
}

/* An unacknowledged send is complete once it is sent. */
static void complete_unreliable(struct fab_qp *qp)
{
	while (qp->sq.at)
		send_done(qp, IBV_WC_SUCCESS);
	qp->sq.una = qp->sq.send_psn;
}

static bool may_send(const struct fab_qp *qp)
{
	return qp->attr.qp_state == IBV_QPS_RTS || qp->attr.qp_state == IBV_QPS_SQD;
}

/* The PSNs of sends that needed no packets belong to those after them. */
static void renumber_sends(struct fab_qp *qp, uint32_t n_psn)
{
	uint32_t i;

	for (i = 0; n_psn && i < qp->sq.count; i++)
		send_at(qp, i)->first_psn -= n_psn;
	qp->sq.post_psn -= n_psn;
}

/* Executes sends that need no packets, if nothing is outstanding. */
static void execute_directly(struct fab_qp *qp)
{
	struct fab_send_queue *sq = &qp->sq;
	uint32_t n_psn = 0;
	uint64_t bytes = 0;

	if (qp->attr.qp_state != IBV_QPS_RTS || sq->una != sq->begun_psn)
		return;
	while (sq->count && bytes < DIRECT_BYTES) {
		const struct fab_send *send = send_at(qp, 0);

		if (!direct_execute(qp, send))
			break;
		bytes += send->bytes;
		n_psn += send->n_psn;
		send_done(qp, IBV_WC_SUCCESS);
	}
	renumber_sends(qp, n_psn);
}

void requester_push(struct fab_qp *qp)
{
	enum ibv_wc_status status = IBV_WC_SUCCESS;
	uint64_t before = qp->sq.send_psn;

	if (!may_send(qp) || qp->sq.waits_for_rnr)
		return;
	execute_directly(qp);
	while (status == IBV_WC_SUCCESS && qp->sq.at < qp->sq.count &&
	       may_send_next(qp, send_at(qp, qp->sq.at))) {
		status = send_next(qp, send_at(qp, qp->sq.at));
		if (qp->init.qp_type == IBV_QPT_UC)
			complete_unreliable(qp);
	}
	/* An error is reported once all earlier sends are complete. */
	if (status != IBV_WC_SUCCESS && qp->sq.at == 0) {
		qp_fail(qp, status);
		return;
	}
	if (qp->sq.count && list_is_empty(&qp->active))
		list_append(&context_of(qp)->active, &qp->active);
	if (before != qp->sq.send_psn && !qp->sq.deadline_ns)
		set_deadline(qp);
}

bool requester_is_drained(const struct fab_qp *qp)
{
	return !qp->sq.count || qp->init.qp_type == IBV_QPT_UD || !has_begun(qp, send_at(qp, 0));
}

void requester_report_drained(struct fab_qp *qp)
{
	if (qp->attr.qp_state != IBV_QPS_SQD || !qp->attr.en_sqd_async_notify ||
	    !requester_is_drained(qp))
		return;
	qp->attr.en_sqd_async_notify = 0;
	qp_report_event(qp, IBV_EVENT_SQ_DRAINED);
}

/* --- responses ------------------------------------------------------------ */

/* Every later response shows the loss again; the first one suffices. */
static void ask_again(struct fab_qp *qp)
{
	if (!qp->sq.misses_response) {
		congestion_lost(qp, false);
		go_back(qp);
	}
	qp->sq.misses_response = true;
}

/* Everything before @una is acknowledged, even if send_psn went back in between. */
static void advance_una(struct fab_qp *qp, uint64_t una)
{
	struct fab_send_queue *sq = &qp->sq;

	congestion_acked(qp, una);
	sq->una = una;
	/* The send that had found no receive has found one. */
	sq->waits_for_rnr = false;
	if (sq->send_psn < una) {
		sq->send_psn = una;
		sq->at = 0;
	}
	reset_retries(qp);
}

/* Everything up to @psn has arrived. If a response should have come before, it was lost. */
static void take_acks_up_to(struct fab_qp *qp, uint64_t psn)
{
	struct fab_send_queue *sq = &qp->sq;
	uint64_t una = sq->una;
	unsigned int n_done = 0;
	bool lost = false;

	if (psn < sq->una || psn >= sq->begun_psn)
		return;
	while (una <= psn && n_done < sq->count) {
		const struct fab_send *send = send_at(qp, n_done);

		lost = has_response(send);
		if (lost)
			break;
		una = send->first_psn + send->n_psn;
		n_done += una <= psn + 1;
		if (una > psn + 1)
			una = psn + 1;
	}
	if (una > sq->una)
		advance_una(qp, una);
	if (n_done) {
		while (n_done--)
			send_done(qp, IBV_WC_SUCCESS);
		if (ack_takes_turns(qp))
			context_of(qp)->has_answer = true;
		held_consider(qp);
	}
	if (lost)
		ask_again(qp);
}

static void handle_response(struct fab_qp *qp, const struct fab_packet *packet, const void *payload)
{
	struct fab_send_queue *sq = &qp->sq;
	uint64_t psn = fab_psn_near(sq->una, packet->psn);
	bool is_read = packet->op == FAB_OP_READ_RESPONSE;
	enum ibv_wc_status status = IBV_WC_BAD_RESP_ERR;
	const struct fab_send *send;

	if (psn > sq->una)
		take_acks_up_to(qp, psn - 1);
	if (!sq->count || psn != sq->una || psn >= sq->begun_psn)
		return;
	send = send_at(qp, 0);
	if (response_is_good(qp, send, packet))
		status = transport_scatter(
			qp, send->sge, send->n_sge, (psn - send->first_psn) * qp->payload_bytes,
			is_read ? payload : &packet->compare_add, response_bytes(qp, send));
	if (status != IBV_WC_SUCCESS) {
		qp_fail(qp, status);
		return;
	}
	advance_una(qp, psn + 1);
	if (sq->una < send->first_psn + send->n_psn)
		return;
	context_of(qp)->has_answer = true;
	send_done(qp, IBV_WC_SUCCESS);
}

/* IBTA vol. 1, table 46: the delay after an RNR NAK. */
static uint64_t rnr_ns(uint8_t timer)
{
	static const uint32_t times_us[32] = {
		655360, 10,    20,    30,    40,    60,	    80,	    120,    160,    240,    320,
		480,	640,   960,   1280,  1920,  2560,   3840,   5120,   7680,   10240,  15360,
		20480,	30720, 40960, 61440, 81920, 122880, 163840, 245760, 327680, 491520,
	};

	return times_us[timer & 31] * UINT64_C(1000);
}

static void not_ready(struct fab_qp *qp, const struct fab_packet *packet)
{
	struct fab_send_queue *sq = &qp->sq;

	if (sq->rnr_left == 0) {
		qp_fail(qp, IBV_WC_RNR_RETRY_EXC_ERR);
		return;
	}
	if (sq->rnr_left != RNR_FOR_EVER)
		sq->rnr_left--;
	go_back(qp);
	sq->waits_for_rnr = true;
	sq->deadline_ns = carrier_now_ns(context_of(qp)) + rnr_ns(packet->rnr_timer);
	tick_start(context_of(qp));
}

static void retry_sends(struct fab_qp *qp, bool timed_out)
{
	if (qp->sq.retries_left == 0) {
		qp_fail(qp, IBV_WC_RETRY_EXC_ERR);
		return;
	}
	qp->sq.retries_left--;
	qp->sq.misses_response = false;
	congestion_lost(qp, timed_out);
	go_back(qp);
	set_deadline(qp);
}

static void take_nak(struct fab_qp *qp, const struct fab_packet *packet)
{
	static const enum ibv_wc_status status[] = {
		[FAB_NAK_INVALID_REQUEST] = IBV_WC_REM_INV_REQ_ERR,
		[FAB_NAK_REMOTE_ACCESS] = IBV_WC_REM_ACCESS_ERR,
		[FAB_NAK_REMOTE_OPERATION] = IBV_WC_REM_OP_ERR,
	};
	uint64_t psn = fab_psn_near(qp->sq.una, packet->psn);

	if (psn >= qp->sq.begun_psn)
		return;
	if (psn > qp->sq.una)
		take_acks_up_to(qp, psn - 1);
	if (!qp->sq.count || psn != qp->sq.una)
		return;
	switch ((enum fab_nak)packet->syndrome) {
	case FAB_NAK_SEQUENCE:
		if (!qp->sq.waits_for_rnr)
			retry_sends(qp, false);
		return;
	case FAB_NAK_RNR:
		not_ready(qp, packet);
		return;
	case FAB_NAK_INVALID_REQUEST:
	case FAB_NAK_REMOTE_ACCESS:
	case FAB_NAK_REMOTE_OPERATION:
		qp_fail(qp, status[packet->syndrome]);
		return;
	}
}

void requester_receive(struct fab_qp *qp, const struct fab_packet *packet, const void *payload)
{
	if (!may_send(qp))
		return;
	if (packet->flags & FAB_GRANTED)
		direct_open(qp);
	if (packet->op == FAB_OP_ACK)
		take_acks_up_to(qp, fab_psn_near(qp->sq.una, packet->psn));
	else if (packet->op == FAB_OP_NAK)
		take_nak(qp, packet);
	else
		handle_response(qp, packet, payload);
	requester_push(qp);
	requester_report_drained(qp);
}

void requester_slow_down(struct fab_qp *qp)
{
	if (may_send(qp))
		congestion_lost(qp, false);
}

static void send_again_early(struct fab_qp *qp, uint64_t now_ns)
{
	qp->sq.n_early++;
	qp->sq.misses_response = false;
	congestion_lost(qp, true);
	go_back(qp);
	set_early_deadline(qp, now_ns);
}

void requester_timer(struct fab_qp *qp, uint64_t now_ns)
{
	struct fab_send_queue *sq = &qp->sq;

	if (!sq->deadline_ns || now_ns < sq->deadline_ns)
		return;
	sq->deadline_ns = 0;
	if (sq->waits_for_rnr)
		sq->waits_for_rnr = false;
	else if (now_ns < sq->retry_ns)
		send_again_early(qp, now_ns);
	else
		retry_sends(qp, true);
	requester_push(qp);
}
