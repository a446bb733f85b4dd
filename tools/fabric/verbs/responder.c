/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The responder of connected queue pairs, IBTA vol. 1, 9.7 and 9.8: it takes packets in the order
 * of their PSNs, and answers duplicates without a second effect.
 */
#include <stdlib.h>

#include "tools/fabric/verbs/ack.h"
#include "tools/fabric/verbs/completion.h"
#include "tools/fabric/verbs/memory.h"
#include "tools/fabric/verbs/transport.h"

#define ATOMIC_BYTES 8

static bool is_reliable(const struct fab_qp *qp)
{
	return qp->init.qp_type == IBV_QPT_RC;
}

static void send_answer(struct fab_qp *qp, struct fab_packet *packet, const void *payload)
{
	transport_send(context_of(qp), qp->path, packet, payload);
}

static void send_nak(struct fab_qp *qp, enum fab_nak why)
{
	struct fab_packet packet;

	if (!is_reliable(qp))
		return;
	transport_header(qp, &packet);
	packet.op = FAB_OP_NAK;
	packet.syndrome = (uint8_t)why;
	packet.psn = qp->responder.psn;
	packet.rnr_timer = qp->attr.min_rnr_timer;
	send_answer(qp, &packet, NULL);
}

/* The peer gets a NAK, and the program an event. On unreliable queue pairs the message is dropped.
 */
static void refuse_request(struct fab_qp *qp, enum fab_nak why)
{
	if (!is_reliable(qp)) {
		qp->responder.in_message = false;
		return;
	}
	send_nak(qp, why);
	qp_enter_error(qp, why == FAB_NAK_REMOTE_ACCESS ? IBV_EVENT_QP_ACCESS_ERR
							: IBV_EVENT_QP_REQ_ERR);
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
	responder->receive = NULL;
	cq_push(to_cq(qp->ex.qp_base.recv_cq), &wc, packet->flags & FAB_SOLICITED);
}

/* The receive itself is in error: too short, or its memory may not be written. */
static void receive_failed(struct fab_qp *qp, enum ibv_wc_status status,
			   const struct fab_packet *packet)
{
	receive_done(qp, status, packet, false);
	if (!is_reliable(qp)) {
		qp->responder.in_message = false;
		return;
	}
	send_nak(qp,
		 status == IBV_WC_LOC_LEN_ERR ? FAB_NAK_INVALID_REQUEST : FAB_NAK_REMOTE_OPERATION);
	qp_enter_error(qp, -1);
}

/* The receive of a message that was dropped is used again. Return: whether there is one; else an
 * RNR NAK was sent. */
static bool take_receive(struct fab_qp *qp)
{
	if (!qp->responder.receive)
		qp->responder.receive = transport_take_receive(qp);
	if (!qp->responder.receive)
		send_nak(qp, FAB_NAK_RNR);
	return qp->responder.receive;
}

/* --- requests ------------------------------------------------------------ */

/* Return: whether the packet was taken, and its number with it. */
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
	if (packet->flags & FAB_LAST)
		receive_done(qp, IBV_WC_SUCCESS, packet, false);
	return true;
}

static bool begin_write(struct fab_qp *qp, const struct fab_packet *packet)
{
	struct fab_responder *responder = &qp->responder;

	responder->offset = 0;
	responder->write_addr = packet->remote_addr;
	responder->write_bytes = packet->dma_bytes;
	responder->write_rkey = packet->rkey;
	if (!(qp->attr.qp_access_flags & IBV_ACCESS_REMOTE_WRITE))
		return false;
	/* IBTA vol. 1, 9.7.4.1.5: of nothing, the key is not looked at. */
	return !packet->dma_bytes ||
	       memory_find(context_of(qp), qp->ex.qp_base.pd, packet->rkey, packet->remote_addr,
			   packet->dma_bytes, IBV_ACCESS_REMOTE_WRITE);
}

static bool take_write(struct fab_qp *qp, const struct fab_packet *packet, const void *payload)
{
	struct fab_responder *responder = &qp->responder;
	uint64_t addr;
	struct fab_mr *mr;

	if (packet->flags & FAB_FIRST && !begin_write(qp, packet)) {
		refuse_request(qp, FAB_NAK_REMOTE_ACCESS);
		return false;
	}
	if (packet->flags & FAB_LAST && packet->flags & FAB_IMM && !take_receive(qp))
		return false;
	addr = responder->write_addr + responder->offset;
	mr = memory_find(context_of(qp), qp->ex.qp_base.pd, responder->write_rkey, addr,
			 packet->bytes, IBV_ACCESS_REMOTE_WRITE);
	if (packet->bytes && (!mr || responder->offset + packet->bytes > responder->write_bytes)) {
		refuse_request(qp, FAB_NAK_REMOTE_ACCESS);
		return false;
	}
	if (packet->bytes)
		memory_store(memory_at(mr, addr), payload, packet->bytes);
	responder->offset += packet->bytes;
	if (packet->flags & FAB_LAST && packet->flags & FAB_IMM)
		receive_done(qp, IBV_WC_SUCCESS, packet, true);
	return true;
}

/* Return: how many PSNs it took; 0 if it was refused. */
static uint32_t answer_read(struct fab_qp *qp, const struct fab_packet *packet)
{
	uint32_t n = 0, offset = 0;
	struct fab_mr *mr;
	struct fab_packet response;

	mr = memory_find(context_of(qp), qp->ex.qp_base.pd, packet->rkey, packet->remote_addr,
			 packet->dma_bytes, IBV_ACCESS_REMOTE_READ);
	if (!(qp->attr.qp_access_flags & IBV_ACCESS_REMOTE_READ) || (!mr && packet->dma_bytes)) {
		refuse_request(qp, FAB_NAK_REMOTE_ACCESS);
		return 0;
	}
	transport_header(qp, &response);
	response.op = FAB_OP_READ_RESPONSE;
	do {
		uint32_t left = packet->dma_bytes - offset;

		response.psn = (packet->psn + n++) & FAB_PSN_MASK;
		response.bytes = left < FAB_FRAGMENT_BYTES ? left : FAB_FRAGMENT_BYTES;
		send_answer(qp, &response,
			    left ? (char *)memory_at(mr, packet->remote_addr) + offset : NULL);
		offset += response.bytes;
	} while (offset < packet->dma_bytes);
	return n;
}

static void send_atomic_response(struct fab_qp *qp, uint32_t psn, uint64_t value)
{
	struct fab_packet response;

	transport_header(qp, &response);
	response.op = FAB_OP_ATOMIC_RESPONSE;
	response.psn = psn;
	response.bytes = ATOMIC_BYTES;
	send_answer(qp, &response, &value);
}

static uint64_t perform_atomic(uint64_t *at, const struct fab_packet *packet)
{
	uint64_t value = packet->compare_add;

	if (packet->op == FAB_OP_FETCH_ADD)
		return __atomic_fetch_add(at, packet->compare_add, __ATOMIC_SEQ_CST);
	__atomic_compare_exchange_n(at, &value, packet->swap, false, __ATOMIC_SEQ_CST,
				    __ATOMIC_SEQ_CST);
	return value;
}

static bool take_atomic(struct fab_qp *qp, const struct fab_packet *packet)
{
	struct fab_responder *responder = &qp->responder;
	struct fab_replay *replay;
	struct fab_mr *mr;

	if (!responder->replay)
		responder->replay = calloc(FAB_RD_MAX, sizeof(*responder->replay));
	mr = memory_find(context_of(qp), qp->ex.qp_base.pd, packet->rkey, packet->remote_addr,
			 ATOMIC_BYTES, IBV_ACCESS_REMOTE_ATOMIC);
	if (!(qp->attr.qp_access_flags & IBV_ACCESS_REMOTE_ATOMIC) || !mr || !responder->replay) {
		refuse_request(qp, FAB_NAK_REMOTE_ACCESS);
		return false;
	}
	if (packet->remote_addr % ATOMIC_BYTES) {
		refuse_request(qp, FAB_NAK_INVALID_REQUEST);
		return false;
	}
	replay = &responder->replay[responder->next_replay++ % FAB_RD_MAX];
	replay->psn = packet->psn;
	replay->value = perform_atomic(memory_at(mr, packet->remote_addr), packet);
	send_atomic_response(qp, packet->psn, replay->value);
	return true;
}

/* --- order --------------------------------------------------------------- */

/* PSNs wrap around: the latest atomic with this PSN is the one. */
static void replay_atomic(struct fab_qp *qp, uint32_t psn)
{
	const struct fab_responder *responder = &qp->responder;
	unsigned int i, n = responder->next_replay;

	for (i = 1; i <= n && i <= FAB_RD_MAX; i++) {
		const struct fab_replay *replay = &responder->replay[(n - i) % FAB_RD_MAX];

		if (replay->psn != psn)
			continue;
		send_atomic_response(qp, psn, replay->value);
		return;
	}
}

/* A request for the rest of a read whose responses were lost may ask for more of the read, too. */
static void read_again(struct fab_qp *qp, const struct fab_packet *packet)
{
	uint32_t end = (packet->psn + answer_read(qp, packet)) & FAB_PSN_MASK;

	if (fab_psn_diff(end, qp->responder.psn) > 0)
		qp->responder.psn = end;
}

/* IBTA vol. 1, 9.7.5.1.2: a read is read again, an atomic is remembered, the rest acknowledged. */
static void answer_again(struct fab_qp *qp, const struct fab_packet *packet)
{
	if (packet->op == FAB_OP_READ)
		read_again(qp, packet);
	else if (packet->op == FAB_OP_SEND || packet->op == FAB_OP_WRITE)
		ack_owe(qp);
	else
		replay_atomic(qp, packet->psn);
}

static bool is_data(const struct fab_packet *packet)
{
	return packet->op == FAB_OP_SEND || packet->op == FAB_OP_WRITE;
}

/* A message begins with its first packet, and nothing else comes before its last: IBTA vol. 1,
 * 9.7.4.1.2. */
static bool is_in_place(const struct fab_qp *qp, const struct fab_packet *packet)
{
	const struct fab_responder *responder = &qp->responder;

	if (!responder->in_message)
		return is_data(packet) ? packet->flags & FAB_FIRST : is_reliable(qp);
	return packet->op == responder->message_op && !(packet->flags & FAB_FIRST);
}

static void advance_psn(struct fab_qp *qp, uint32_t n)
{
	qp->responder.psn = (qp->responder.psn + n) & FAB_PSN_MASK;
}

static void take_request(struct fab_qp *qp, const struct fab_packet *packet, const void *payload)
{
	bool taken;

	if (packet->op == FAB_OP_READ) {
		advance_psn(qp, answer_read(qp, packet));
		return;
	}
	if (!is_data(packet)) {
		if (take_atomic(qp, packet))
			advance_psn(qp, 1);
		return;
	}
	taken = packet->op == FAB_OP_SEND ? take_send(qp, packet, payload)
					  : take_write(qp, packet, payload);
	if (!taken)
		return;
	advance_psn(qp, 1);
	qp->responder.in_message = !(packet->flags & FAB_LAST);
	qp->responder.message_op = packet->op;
	if (packet->flags & FAB_ASK_ACK && is_reliable(qp))
		ack_owe(qp);
}

/* IBTA vol. 1, 9.8.2.2: a message that misses a packet is dropped; the next first packet begins a
 * new one. */
static void asked_unreliably(struct fab_qp *qp, const struct fab_packet *packet,
			     const void *payload)
{
	struct fab_responder *responder = &qp->responder;
	bool in_order = packet->psn == responder->psn;

	if (!in_order || packet->flags & FAB_FIRST)
		responder->in_message = false;
	responder->psn = packet->psn;
	if (is_in_place(qp, packet))
		take_request(qp, packet, payload);
	responder->psn = (packet->psn + 1) & FAB_PSN_MASK;
}

static void report_established(struct fab_qp *qp)
{
	if (qp->attr.qp_state != IBV_QPS_RTR || qp->has_reported_established)
		return;
	qp->has_reported_established = true;
	qp_async(qp, IBV_EVENT_COMM_EST);
}

void responder_asked(struct fab_qp *qp, const struct fab_packet *packet, const void *payload)
{
	struct fab_responder *responder = &qp->responder;
	int32_t ahead = fab_psn_diff(packet->psn, responder->psn);

	report_established(qp);
	if (!is_reliable(qp)) {
		asked_unreliably(qp, packet, payload);
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
