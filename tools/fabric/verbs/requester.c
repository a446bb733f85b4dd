/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The requester of connected queue pairs, IBTA vol. 1, 9.7: it sends in order, up to a window, and
 * goes back to the oldest packet that is not acknowledged when one is lost. It asks for a read in
 * parts, which limits what waits in memory on both sides.
 */
#include "base/clock.h"
#include "tools/fabric/verbs/completion.h"
#include "tools/fabric/verbs/tick.h"
#include "tools/fabric/verbs/transport.h"

#define WINDOW_PSNS	64
#define READ_PSNS	16
#define ASK_ACK_PSNS	16
#define RNR_FOR_EVER	7
#define TIMEOUT_UNIT_NS 4096

static struct fab_send *send_at(const struct fab_qp *qp, uint32_t i)
{
	return qp->sq.slot[(qp->sq.head + i) % qp->sq.n_max];
}

static bool is_atomic(const struct fab_send *send)
{
	return send->opcode == IBV_WR_ATOMIC_CMP_AND_SWP ||
	       send->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
}

static bool has_response(const struct fab_send *send)
{
	return send->opcode == IBV_WR_RDMA_READ || is_atomic(send);
}

/* --- timers -------------------------------------------------------------- */

static void set_deadline(struct fab_qp *qp)
{
	struct fab_send_queue *sq = &qp->sq;

	sq->deadline_ns = 0;
	if (qp->init.qp_type != IBV_QPT_RC || sq->una == sq->send_psn || !qp->attr.timeout)
		return;
	sq->deadline_ns = clock_ns() + ((uint64_t)TIMEOUT_UNIT_NS << qp->attr.timeout);
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
}

/* --- sending ------------------------------------------------------------- */

static unsigned int responses_awaited(const struct fab_qp *qp)
{
	unsigned int n = 0;
	uint32_t i;

	for (i = 0; i < qp->sq.at; i++)
		n += has_response(send_at(qp, i));
	return n;
}

/* How many PSNs the next packet takes: those of its responses, for a read. */
static uint32_t next_psns(const struct fab_qp *qp, const struct fab_send *send)
{
	uint32_t done = (uint32_t)fab_psn_diff(qp->sq.send_psn, send->first_psn);
	uint32_t left = send->n_psn - done;

	if (send->opcode != IBV_WR_RDMA_READ)
		return 1;
	return left < READ_PSNS ? left : READ_PSNS;
}

static bool has_begun(const struct fab_qp *qp, const struct fab_send *send)
{
	return fab_psn_diff(qp->sq.begun_psn, send->first_psn) > 0;
}

static bool may_go(const struct fab_qp *qp, const struct fab_send *send)
{
	const struct fab_send_queue *sq = &qp->sq;
	uint32_t in_flight = (uint32_t)fab_psn_diff(sq->send_psn, sq->una);

	if (qp->attr.qp_state == IBV_QPS_SQD && !has_begun(qp, send))
		return false;
	if (qp->init.qp_type == IBV_QPT_UC)
		return true;
	if (in_flight + next_psns(qp, send) > WINDOW_PSNS)
		return false;
	if (has_response(send) && responses_awaited(qp) >= qp->attr.max_rd_atomic)
		return false;
	return !(send->flags & IBV_SEND_FENCE) || responses_awaited(qp) == 0;
}

static void send_packet(struct fab_qp *qp, struct fab_packet *packet, const void *payload)
{
	transport_send(context_of(qp), qp->path, packet, payload);
}

static void send_read(struct fab_qp *qp, const struct fab_send *send, struct fab_packet *packet)
{
	uint64_t n = (uint64_t)fab_psn_diff(packet->psn, send->first_psn);
	uint64_t offset = n * FAB_FRAGMENT_BYTES;
	uint64_t most = (uint64_t)next_psns(qp, send) * FAB_FRAGMENT_BYTES;
	uint64_t left = send->bytes - offset;

	packet->op = FAB_OP_READ;
	packet->rkey = send->rkey;
	packet->remote_addr = send->remote_addr + offset;
	packet->dma_bytes = (uint32_t)(left < most ? left : most);
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

static bool has_imm(const struct fab_send *send)
{
	return send->opcode == IBV_WR_SEND_WITH_IMM || send->opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
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
}

static enum ibv_wc_status send_data(struct fab_qp *qp, const struct fab_send *send,
				    struct fab_packet *packet)
{
	uint32_t n = (uint32_t)fab_psn_diff(packet->psn, send->first_psn);
	uint64_t offset = (uint64_t)n * FAB_FRAGMENT_BYTES;
	uint64_t left = send->bytes - offset;
	enum ibv_wc_status status;

	packet->bytes = (uint32_t)(left < FAB_FRAGMENT_BYTES ? left : FAB_FRAGMENT_BYTES);
	status = transport_gather(qp, send, offset, packet->bytes, context_of(qp)->scratch);
	if (status != IBV_WC_SUCCESS)
		return status;
	packet->op = send->opcode == IBV_WR_SEND || send->opcode == IBV_WR_SEND_WITH_IMM
			     ? FAB_OP_SEND
			     : FAB_OP_WRITE;
	if (packet->op == FAB_OP_WRITE) {
		packet->rkey = send->rkey;
		packet->remote_addr = send->remote_addr;
		packet->dma_bytes = (uint32_t)send->bytes;
	}
	if (n == 0)
		packet->flags |= FAB_FIRST;
	if (n + 1 == send->n_psn)
		mark_last(packet, send);
	else if (n % ASK_ACK_PSNS == ASK_ACK_PSNS - 1)
		packet->flags |= FAB_ASK_ACK;
	send_packet(qp, packet, context_of(qp)->scratch);
	return IBV_WC_SUCCESS;
}

static enum ibv_wc_status send_next(struct fab_qp *qp, const struct fab_send *send)
{
	uint32_t n_psns = next_psns(qp, send);
	enum ibv_wc_status status = IBV_WC_SUCCESS;
	struct fab_packet packet;

	transport_header(qp, &packet);
	packet.psn = qp->sq.send_psn;
	if (send->opcode == IBV_WR_RDMA_READ)
		send_read(qp, send, &packet);
	else if (is_atomic(send))
		send_atomic(qp, send, &packet);
	else
		status = send_data(qp, send, &packet);
	if (status != IBV_WC_SUCCESS)
		return status;
	qp->sq.send_psn = (qp->sq.send_psn + n_psns) & FAB_PSN_MASK;
	if (fab_psn_diff(qp->sq.send_psn, qp->sq.begun_psn) > 0)
		qp->sq.begun_psn = qp->sq.send_psn;
	if (fab_psn_diff(qp->sq.send_psn, send->first_psn) == (int32_t)send->n_psn)
		qp->sq.at++;
	return IBV_WC_SUCCESS;
}

/* A send without acknowledgement is complete once it is sent. */
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

void requester_push(struct fab_qp *qp)
{
	enum ibv_wc_status status = IBV_WC_SUCCESS;
	uint32_t before = qp->sq.send_psn;

	if (!may_send(qp) || qp->sq.waits_for_rnr)
		return;
	while (status == IBV_WC_SUCCESS && qp->sq.at < qp->sq.count &&
	       may_go(qp, send_at(qp, qp->sq.at))) {
		status = send_next(qp, send_at(qp, qp->sq.at));
		if (qp->init.qp_type == IBV_QPT_UC)
			complete_unreliable(qp);
	}
	/* An error is reported once all sends before it are complete. */
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

void requester_tell_drained(struct fab_qp *qp)
{
	if (qp->attr.qp_state != IBV_QPS_SQD || !qp->attr.en_sqd_async_notify ||
	    !requester_is_drained(qp))
		return;
	qp->attr.en_sqd_async_notify = 0;
	qp_async(qp, IBV_EVENT_SQ_DRAINED);
}

/* --- answers ------------------------------------------------------------- */

/* Every later answer shows that a response was lost: the first one suffices. */
static void ask_again(struct fab_qp *qp)
{
	if (!qp->sq.misses_response)
		go_back(qp);
	qp->sq.misses_response = true;
}

/* All up to @psn arrived. Where a response should have come before, it was lost. */
static void take_acks_up_to(struct fab_qp *qp, uint32_t psn)
{
	struct fab_send_queue *sq = &qp->sq;
	uint32_t una = sq->una;
	bool lost = false;

	if (fab_psn_diff(psn, sq->una) < 0 || fab_psn_diff(psn, sq->send_psn) >= 0)
		return;
	while (sq->count && fab_psn_diff(psn, sq->una) >= 0) {
		const struct fab_send *send = send_at(qp, 0);
		uint32_t end = (send->first_psn + send->n_psn) & FAB_PSN_MASK;

		if (has_response(send)) {
			lost = true;
			break;
		}
		if (fab_psn_diff(end, psn) > 1) {
			sq->una = (psn + 1) & FAB_PSN_MASK;
			break;
		}
		sq->una = end;
		send_done(qp, IBV_WC_SUCCESS);
	}
	if (sq->una != una)
		reset_retries(qp);
	if (lost)
		ask_again(qp);
}

static void response_came(struct fab_qp *qp, const struct fab_packet *packet, const void *payload)
{
	struct fab_send_queue *sq = &qp->sq;
	struct fab_send *send;
	enum ibv_wc_status status;
	uint64_t offset;

	take_acks_up_to(qp, (packet->psn - 1) & FAB_PSN_MASK);
	if (!sq->count || packet->psn != sq->una || sq->una == sq->send_psn)
		return;
	send = send_at(qp, 0);
	if (!has_response(send) ||
	    (packet->op == FAB_OP_READ_RESPONSE) != (send->opcode == IBV_WR_RDMA_READ))
		return;
	offset = (uint64_t)fab_psn_diff(packet->psn, send->first_psn) * FAB_FRAGMENT_BYTES;
	status = transport_scatter(qp, send->sge, send->n_sge, offset, payload, packet->bytes);
	if (status != IBV_WC_SUCCESS) {
		qp_fail(qp, status);
		return;
	}
	sq->una = (sq->una + 1) & FAB_PSN_MASK;
	reset_retries(qp);
	if (fab_psn_diff(sq->una, send->first_psn) == (int32_t)send->n_psn)
		send_done(qp, IBV_WC_SUCCESS);
}

/* IBTA vol. 1, table 46: how long to wait after an RNR NAK. */
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
	sq->deadline_ns = clock_ns() + rnr_ns(packet->rnr_timer);
	tick_start(context_of(qp));
}

static void retry_sends(struct fab_qp *qp)
{
	if (qp->sq.retries_left == 0) {
		qp_fail(qp, IBV_WC_RETRY_EXC_ERR);
		return;
	}
	qp->sq.retries_left--;
	qp->sq.misses_response = false;
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

	if (fab_psn_diff(packet->psn, qp->sq.send_psn) >= 0)
		return;
	take_acks_up_to(qp, (packet->psn - 1) & FAB_PSN_MASK);
	if (!qp->sq.count || packet->psn != qp->sq.una)
		return;
	switch ((enum fab_nak)packet->syndrome) {
	case FAB_NAK_SEQUENCE:
		retry_sends(qp);
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

void requester_answered(struct fab_qp *qp, const struct fab_packet *packet, const void *payload)
{
	if (!may_send(qp))
		return;
	if (packet->op == FAB_OP_ACK)
		take_acks_up_to(qp, packet->psn);
	else if (packet->op == FAB_OP_NAK)
		take_nak(qp, packet);
	else
		response_came(qp, packet, payload);
	requester_push(qp);
	requester_tell_drained(qp);
}

void requester_timer(struct fab_qp *qp, uint64_t now_ns)
{
	struct fab_send_queue *sq = &qp->sq;

	if (!sq->deadline_ns || now_ns < sq->deadline_ns)
		return;
	sq->deadline_ns = 0;
	if (sq->waits_for_rnr)
		sq->waits_for_rnr = false;
	else
		retry_sends(qp);
	requester_push(qp);
}
