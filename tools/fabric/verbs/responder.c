/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The responder of connected queue pairs, IBTA vol. 1, 9.7 and 9.8: it executes packets in the
 * order of their PSNs, and answers duplicates without executing them again.
 */
#include <stdlib.h>

#include "tools/fabric/verbs/ack.h"
#include "tools/fabric/verbs/completion.h"
#include "tools/fabric/verbs/memory.h"
#include "tools/fabric/verbs/transport.h"
#include "tools/fabric/verbs/window.h"
#include "tools/fabric/verbs/xrc.h"

#define ATOMIC_BYTES 8

static void send_nak(struct fab_qp *qp, enum fab_nak why)
{
	if (is_reliable(qp))
		ack_nak(qp, why);
}

/* The peer has the NAK, and no packet was accepted since. */
static void fail_refused(struct fab_qp *qp)
{
	qp_enter_error(qp, qp->responder.refused_event);
}

static void refuse_with_event(struct fab_qp *qp, enum fab_nak why, int event)
{
	qp->responder.is_refused = true;
	qp->responder.refused_event = event;
	send_nak(qp, why);
	if (!qp->responder.n_responses)
		fail_refused(qp);
}

/*
 * The peer gets a NAK, and the program an event. On unreliable queue pairs the message is dropped.
 */
static void refuse_request(struct fab_qp *qp, enum fab_nak why)
{
	if (is_reliable(qp))
		refuse_with_event(qp, why,
				  why == FAB_NAK_REMOTE_ACCESS ? IBV_EVENT_QP_ACCESS_ERR
							       : IBV_EVENT_QP_REQ_ERR);
	else
		qp->responder.in_message = false;
}

/* --- receives ------------------------------------------------------------ */

static void receive_done(struct fab_qp *qp, enum ibv_wc_status status,
			 const struct fab_packet *packet, bool is_write)
{
	struct fab_responder *responder = &qp->responder;
	struct ibv_wc wc = {
		.wr_id = responder->receive->wr_id,
		.status = status,
		.opcode = is_write ? IBV_WC_RECV_RDMA_WITH_IMM : IBV_WC_RECV,
		.byte_len = (uint32_t)responder->offset,
		.qp_num = qp->ex.qp_base.qp_num,
		.src_qp = packet->src_qpn,
		.slid = packet->slid,
		.sl = packet->sl,
	};

	if (packet->flags & FAB_IMM) {
		wc.wc_flags = IBV_WC_WITH_IMM;
		wc.imm_data = packet->imm;
	}
	if (packet->flags & FAB_INVALIDATE) {
		wc.wc_flags = IBV_WC_WITH_INV;
		wc.invalidated_rkey = packet->rkey;
	}
	responder->receive = NULL;
	receive_completed(qp, &wc, packet->flags & FAB_SOLICITED);
}

/* The receive is in error: too short, or its memory is not writable. */
static void receive_failed(struct fab_qp *qp, enum ibv_wc_status status,
			   const struct fab_packet *packet)
{
	receive_done(qp, status, packet, false);
	if (is_reliable(qp))
		refuse_with_event(qp,
				  status == IBV_WC_LOC_LEN_ERR ? FAB_NAK_INVALID_REQUEST
							       : FAB_NAK_REMOTE_OPERATION,
				  -1);
	else
		qp_enter_error(qp, -1);
}

/*
 * The receive of a dropped message is reused. Return: whether there is one; otherwise an RNR NAK
 * was sent.
 */
static bool take_receive(struct fab_qp *qp)
{
	if (!qp->responder.receive)
		qp->responder.receive = transport_take_receive(qp);
	if (qp->responder.receive)
		return true;
	send_nak(qp, FAB_NAK_RNR);
	/* IBTA vol. 1, 9.7.5.2.8: later packets are dropped until this request is retransmitted. */
	qp->responder.nak_sent = true;
	return false;
}

/* --- requests ------------------------------------------------------------ */

/* A message is complete, which the next response reports. IBTA vol. 1, 9.7.7.1. */
static void count_message(struct fab_qp *qp)
{
	qp->responder.msn = (qp->responder.msn + 1) & FAB_PSN_MASK;
}

/*
 * IBTA vol. 1, 9.7.4.1.6: all packets of a message are full except the last, which is not empty
 * unless it is the only one.
 */
static bool has_good_length(const struct fab_qp *qp, const struct fab_packet *packet)
{
	if (!(packet->flags & FAB_LAST))
		return packet->bytes == qp->payload_bytes;
	if (packet->bytes > qp->payload_bytes)
		return false;
	return packet->bytes || packet->flags & FAB_FIRST;
}

/* Return: whether the packet was accepted, with its PSN. */
static bool take_send(struct fab_qp *qp, const struct fab_packet *packet, const void *payload)
{
	struct fab_responder *responder = &qp->responder;
	enum ibv_wc_status status;

	if (packet->flags & FAB_FIRST) {
		responder->offset = 0;
		if (!take_receive(qp))
			return false;
	}
	status = transport_scatter(qp, responder->receive->sge, responder->receive->n_sge,
				   responder->offset, payload, packet->bytes);
	if (status != IBV_WC_SUCCESS) {
		receive_failed(qp, status, packet);
		return false;
	}
	responder->offset += packet->bytes;
	if (packet->flags & FAB_INVALIDATE && !window_invalidate(qp, packet->rkey)) {
		refuse_request(qp, FAB_NAK_REMOTE_ACCESS);
		return false;
	}
	if (packet->flags & FAB_LAST)
		receive_done(qp, IBV_WC_SUCCESS, packet, false);
	return true;
}

/* Return: false if it was refused. */
static bool begin_write(struct fab_qp *qp, const struct fab_packet *packet)
{
	struct fab_responder *responder = &qp->responder;

	responder->offset = 0;
	responder->write_addr = packet->remote_addr;
	responder->write_bytes = packet->dma_bytes;
	responder->write_rkey = packet->rkey;
	if (packet->dma_bytes > FAB_MSG_MAX) {
		refuse_request(qp, FAB_NAK_INVALID_REQUEST);
		return false;
	}
	/* IBTA vol. 1, 9.7.4.1.5: the key is not checked for a length of zero. */
	if (!packet->dma_bytes ||
	    memory_find_remote(qp, packet->srqn, packet->rkey, packet->remote_addr,
			       packet->dma_bytes, IBV_ACCESS_REMOTE_WRITE))
		return true;
	refuse_request(qp, FAB_NAK_REMOTE_ACCESS);
	return false;
}

/* IBTA vol. 1, 9.7.4.1.6: the packets of a write have the total length given in the first. */
static bool fits_write(const struct fab_qp *qp, const struct fab_packet *packet)
{
	uint64_t end = qp->responder.offset + packet->bytes;

	return packet->flags & FAB_LAST ? end == qp->responder.write_bytes
					: end < qp->responder.write_bytes;
}

static bool take_write(struct fab_qp *qp, const struct fab_packet *packet, const void *payload)
{
	struct fab_responder *responder = &qp->responder;
	uint64_t addr;
	struct fab_mr *mr;

	if (packet->flags & FAB_FIRST && !begin_write(qp, packet))
		return false;
	if (!fits_write(qp, packet)) {
		refuse_request(qp, FAB_NAK_INVALID_REQUEST);
		return false;
	}
	if (packet->flags & FAB_LAST && packet->flags & FAB_IMM && !take_receive(qp))
		return false;
	addr = responder->write_addr + responder->offset;
	mr = memory_find_remote(qp, packet->srqn, responder->write_rkey, addr, packet->bytes,
				IBV_ACCESS_REMOTE_WRITE);
	if (packet->bytes && !(mr && memory_store(mr, addr, payload, packet->bytes))) {
		refuse_request(qp, FAB_NAK_REMOTE_ACCESS);
		return false;
	}
	responder->offset += packet->bytes;
	if (packet->flags & FAB_LAST && packet->flags & FAB_IMM)
		receive_done(qp, IBV_WC_SUCCESS, packet, true);
	return true;
}

static uint32_t read_psns(const struct fab_qp *qp, uint32_t bytes)
{
	return bytes ? (bytes - 1) / qp->payload_bytes + 1 : 1;
}

static bool may_read(struct fab_qp *qp, const struct fab_packet *packet)
{
	return !packet->dma_bytes ||
	       memory_find_remote(qp, packet->srqn, packet->rkey, packet->remote_addr,
				  packet->dma_bytes, IBV_ACCESS_REMOTE_READ);
}

static struct fab_response response_to_read(const struct fab_qp *qp,
					    const struct fab_packet *packet)
{
	return (struct fab_response){
		.op = FAB_OP_READ_RESPONSE,
		.psn = packet->psn,
		.n_psn = read_psns(qp, packet->dma_bytes),
		.msn = qp->responder.msn,
		.srqn = packet->srqn,
		.rkey = packet->rkey,
		.addr = packet->remote_addr,
		.left = packet->dma_bytes,
	};
}

static void advance_psn(struct fab_qp *qp, uint32_t n)
{
	qp->responder.psn = (qp->responder.psn + n) & FAB_PSN_MASK;
}

static void take_read(struct fab_qp *qp, const struct fab_packet *packet)
{
	struct fab_response response;

	if (packet->dma_bytes > FAB_MSG_MAX) {
		refuse_request(qp, FAB_NAK_INVALID_REQUEST);
		return;
	}
	if (!may_read(qp, packet)) {
		refuse_request(qp, FAB_NAK_REMOTE_ACCESS);
		return;
	}
	count_message(qp);
	response = response_to_read(qp, packet);
	if (!ack_make_room(qp) || !ack_add_response(qp, &response))
		refuse_request(qp, FAB_NAK_INVALID_REQUEST);
	else if (!qp->responder.is_refused)
		advance_psn(qp, response.n_psn);
}

static bool respond_to_atomic(struct fab_qp *qp, uint32_t psn, uint64_t value, bool is_again)
{
	struct fab_response response = {
		.op = FAB_OP_ATOMIC_RESPONSE,
		.is_again = is_again,
		.psn = psn,
		.n_psn = 1,
		.msn = qp->responder.msn,
		.value = value,
	};

	return ack_add_response(qp, &response);
}

static void take_atomic(struct fab_qp *qp, const struct fab_packet *packet)
{
	struct fab_responder *responder = &qp->responder;
	struct fab_replay *replay;
	struct fab_mr *mr;
	uint64_t before;

	if (!responder->replay)
		responder->replay = calloc(FAB_RD_MAX, sizeof(*responder->replay));
	mr = memory_find_remote(qp, packet->srqn, packet->rkey, packet->remote_addr, ATOMIC_BYTES,
				IBV_ACCESS_REMOTE_ATOMIC);
	if (!mr || !responder->replay) {
		refuse_request(qp, FAB_NAK_REMOTE_ACCESS);
		return;
	}
	if (packet->remote_addr % ATOMIC_BYTES || !ack_make_room(qp)) {
		refuse_request(qp, FAB_NAK_INVALID_REQUEST);
		return;
	}
	if (!memory_atomic(mr, packet, &before)) {
		refuse_request(qp, FAB_NAK_REMOTE_ACCESS);
		return;
	}
	replay = &responder->replay[responder->next_replay++ % FAB_RD_MAX];
	replay->psn = packet->psn;
	replay->value = before;
	count_message(qp);
	advance_psn(qp, 1);
	if (!respond_to_atomic(qp, packet->psn, replay->value, false))
		refuse_request(qp, FAB_NAK_INVALID_REQUEST);
}

static bool respond_empty(struct fab_qp *qp, uint32_t psn, bool is_again)
{
	struct fab_response response = {
		.op = FAB_OP_READ_RESPONSE,
		.is_again = is_again,
		.psn = psn,
		.n_psn = 1,
		.msn = qp->responder.msn,
	};

	return ack_add_response(qp, &response);
}

static void take_empty(struct fab_qp *qp, uint32_t psn)
{
	count_message(qp);
	advance_psn(qp, 1);
	if (!respond_empty(qp, psn, false))
		refuse_request(qp, FAB_NAK_INVALID_REQUEST);
}

/* Annex A19. */
static void take_atomic_write(struct fab_qp *qp, const struct fab_packet *packet,
			      const void *payload)
{
	struct fab_mr *mr;

	if (packet->remote_addr % ATOMIC_BYTES || packet->bytes != ATOMIC_BYTES ||
	    packet->dma_bytes != ATOMIC_BYTES || !ack_make_room(qp)) {
		refuse_request(qp, FAB_NAK_INVALID_REQUEST);
		return;
	}
	mr = memory_find_remote(qp, packet->srqn, packet->rkey, packet->remote_addr, ATOMIC_BYTES,
				IBV_ACCESS_REMOTE_WRITE);
	if (!mr || !memory_store(mr, packet->remote_addr, payload, ATOMIC_BYTES)) {
		refuse_request(qp, FAB_NAK_REMOTE_ACCESS);
		return;
	}
	take_empty(qp, packet->psn);
}

static unsigned int flush_access(uint8_t flush)
{
	return (flush & FAB_FLUSH_GLOBAL ? FAB_ACCESS_FLUSH_GLOBAL : 0) |
	       (flush & FAB_FLUSH_PERSISTENT ? FAB_ACCESS_FLUSH_PERSISTENT : 0);
}

static bool may_flush(const struct fab_qp *qp, const struct fab_packet *packet)
{
	bool of_region = packet->flush & FAB_FLUSH_REGION;
	const struct fab_mr *mr = memory_of_key(context_of(qp), packet->rkey);

	return mr &&
	       memory_find_remote(qp, packet->srqn, packet->rkey,
				  of_region ? mr->iova : packet->remote_addr,
				  of_region ? 0 : packet->dma_bytes, flush_access(packet->flush));
}

/* Annex A19. What earlier requests stored is in the program's memory, and visible to all of it. */
static void take_flush(struct fab_qp *qp, const struct fab_packet *packet)
{
	if (!flush_access(packet->flush) || packet->flush & ~FAB_FLUSH_KNOWN ||
	    !ack_make_room(qp)) {
		refuse_request(qp, FAB_NAK_INVALID_REQUEST);
		return;
	}
	if (!may_flush(qp, packet)) {
		refuse_request(qp, FAB_NAK_REMOTE_ACCESS);
		return;
	}
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	take_empty(qp, packet->psn);
}

/* --- order --------------------------------------------------------------- */

/* IBTA vol. 1, 9.7.4.1.3: the queue pair's own rights; without them there is no such operation. */
static bool is_enabled(const struct fab_qp *qp, const struct fab_packet *packet)
{
	unsigned int access = 0;

	if (packet->op == FAB_OP_WRITE || packet->op == FAB_OP_ATOMIC_WRITE)
		access = IBV_ACCESS_REMOTE_WRITE;
	else if (packet->op == FAB_OP_READ)
		access = IBV_ACCESS_REMOTE_READ;
	else if (packet->op == FAB_OP_COMPARE_SWAP || packet->op == FAB_OP_FETCH_ADD)
		access = IBV_ACCESS_REMOTE_ATOMIC;
	else if (packet->op == FAB_OP_FLUSH)
		access = flush_access(packet->flush);
	return (qp->attr.qp_access_flags & access) == access;
}

/*
 * PSNs wrap around: the latest atomic with this PSN is meant. If there is no room for the response,
 * the requester retransmits.
 */
static void replay_atomic(struct fab_qp *qp, uint32_t psn)
{
	const struct fab_responder *responder = &qp->responder;
	unsigned int i, n = responder->next_replay;
	bool is_first;

	if (ack_find_response(qp, (psn + 1) & FAB_PSN_MASK, &is_first))
		return;
	for (i = 1; i <= n && i <= FAB_RD_MAX; i++) {
		const struct fab_replay *replay = &responder->replay[(n - i) % FAB_RD_MAX];

		if (replay->psn != psn)
			continue;
		respond_to_atomic(qp, psn, replay->value, true);
		return;
	}
}

/* A response whose beginning was lost starts again; one that has not started is sent anyway. */
static void read_again(struct fab_qp *qp, const struct fab_packet *packet)
{
	uint32_t end = (packet->psn + read_psns(qp, packet->dma_bytes)) & FAB_PSN_MASK;
	struct fab_response response = response_to_read(qp, packet), *owed;
	bool is_first;

	if (packet->dma_bytes > FAB_MSG_MAX || fab_psn_diff(end, qp->responder.psn) > 0 ||
	    !is_enabled(qp, packet) || !may_read(qp, packet))
		return;
	response.is_again = true;
	owed = ack_find_response(qp, end, &is_first);
	if (!owed)
		ack_add_response(qp, &response);
	else if (is_first)
		*owed = response;
}

/* An atomic write is not stored again: the program may have reused the memory. */
static void answer_empty_again(struct fab_qp *qp, uint32_t psn)
{
	bool is_first;

	if (!ack_find_response(qp, (psn + 1) & FAB_PSN_MASK, &is_first))
		respond_empty(qp, psn, true);
}

/*
 * IBTA vol. 1, 9.7.5.1.2: a read is executed again, an atomic answered from memory, anything else
 * acknowledged.
 */
static void answer_again(struct fab_qp *qp, const struct fab_packet *packet)
{
	if (packet->op == FAB_OP_READ)
		read_again(qp, packet);
	else if (packet->op == FAB_OP_SEND || packet->op == FAB_OP_WRITE)
		ack_again(qp);
	else if (packet->op == FAB_OP_ATOMIC_WRITE || packet->op == FAB_OP_FLUSH)
		answer_empty_again(qp, packet->psn);
	else if (packet->op != FAB_OP_UNKNOWN)
		replay_atomic(qp, packet->psn);
}

static bool is_data(const struct fab_packet *packet)
{
	return packet->op == FAB_OP_SEND || packet->op == FAB_OP_WRITE;
}

/*
 * Annex A14: a request names a shared receive queue of the target's domain, the same for the whole
 * message.
 */
static bool is_for_queue(struct fab_qp *qp, const struct fab_packet *packet)
{
	if (qp->responder.in_message && packet->srqn != qp->responder.srqn)
		return false;
	qp->responder.srqn = packet->srqn;
	return qp->init.qp_type != IBV_QPT_XRC_RECV || xrc_srq(qp, packet->srqn);
}

/* IBTA vol. 1, 9.7.4.1.2: a message begins with a first packet, and has no other one. */
static bool is_in_place(struct fab_qp *qp, const struct fab_packet *packet)
{
	const struct fab_responder *responder = &qp->responder;

	if (packet->op == FAB_OP_UNKNOWN || !is_enabled(qp, packet) || !is_for_queue(qp, packet))
		return false;
	if (is_data(packet) && !has_good_length(qp, packet))
		return false;
	if (!responder->in_message)
		return is_data(packet) ? packet->flags & FAB_FIRST : is_reliable(qp);
	return packet->op == responder->message_op && !(packet->flags & FAB_FIRST);
}

static void take_answered(struct fab_qp *qp, const struct fab_packet *packet, const void *payload)
{
	if (packet->op == FAB_OP_READ)
		take_read(qp, packet);
	else if (packet->op == FAB_OP_ATOMIC_WRITE)
		take_atomic_write(qp, packet, payload);
	else if (packet->op == FAB_OP_FLUSH)
		take_flush(qp, packet);
	else
		take_atomic(qp, packet);
}

static void take_request(struct fab_qp *qp, const struct fab_packet *packet, const void *payload)
{
	bool taken;

	if (!is_data(packet)) {
		take_answered(qp, packet, payload);
		return;
	}
	taken = packet->op == FAB_OP_SEND ? take_send(qp, packet, payload)
					  : take_write(qp, packet, payload);
	if (!taken)
		return;
	advance_psn(qp, 1);
	if (packet->flags & FAB_LAST) {
		count_message(qp);
		ack_note_message(qp);
	}
	qp->responder.in_message = !(packet->flags & FAB_LAST);
	qp->responder.message_op = packet->op;
	if (packet->flags & FAB_ASK_ACK && is_reliable(qp))
		ack_owe(qp);
}

/*
 * IBTA vol. 1, 9.8.2.2: a message with a missing packet is dropped; the next first packet begins a
 * new one.
 */
static void receive_unreliable(struct fab_qp *qp, const struct fab_packet *packet,
			       const void *payload)
{
	struct fab_responder *responder = &qp->responder;
	bool in_order = packet->psn == responder->psn;

	if (!in_order || packet->flags & FAB_FIRST)
		responder->in_message = false;
	if (is_in_place(qp, packet))
		take_request(qp, packet, payload);
	else
		responder->in_message = false;
	responder->psn = (packet->psn + 1) & FAB_PSN_MASK;
}

static void report_established(struct fab_qp *qp)
{
	if (qp->attr.qp_state != IBV_QPS_RTR || qp->has_reported_established)
		return;
	qp->has_reported_established = true;
	qp_report_event(qp, IBV_EVENT_COMM_EST);
}

void responder_receive(struct fab_qp *qp, const struct fab_packet *packet, const void *payload)
{
	struct fab_responder *responder = &qp->responder;
	int32_t ahead = fab_psn_diff(packet->psn, responder->psn);

	if (responder->is_refused)
		return;
	report_established(qp);
	if (!is_reliable(qp)) {
		receive_unreliable(qp, packet, payload);
		return;
	}
	if (ahead < 0) {
		answer_again(qp, packet);
		return;
	}
	if (ahead > 0) {
		if (!responder->nak_sent)
			send_nak(qp, FAB_NAK_SEQUENCE);
		responder->nak_sent = true;
		return;
	}
	responder->nak_sent = false;
	if (is_in_place(qp, packet))
		take_request(qp, packet, payload);
	else
		refuse_request(qp, FAB_NAK_INVALID_REQUEST);
}

void responder_end_turn(struct fab_context *context)
{
	struct fab_qp *qp;

	list_for_each_entry_safe (qp, &context->unacked, unacked) {
		if (ack_send_some(qp) && qp->responder.is_refused)
			fail_refused(qp);
	}
}
