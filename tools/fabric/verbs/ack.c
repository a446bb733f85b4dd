/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Responses, ACKs and NAKs that a responder owes: see ack.h.
 */
#include "tools/fabric/verbs/ack.h"

#include <stdlib.h>

#include "tools/fabric/verbs/carrier.h"
#include "tools/fabric/verbs/grant.h"
#include "tools/fabric/verbs/held.h"
#include "tools/fabric/verbs/memory.h"
#include "tools/fabric/verbs/transport.h"

#define CNP_INTERVAL_NS 50000 /* as in devices; A17.9.4 leaves it to them */
#define ACK_TURNS	8
/*
 * The peer's write may have arrived while the ACK behind it, for which it waits, has not: see
 * post.c.
 */
#define ACK_POLLS 8

static void note_output(struct fab_qp *qp)
{
	if (qp->responder.owed == FAB_OWED_DEFERRED_ACK) {
		qp->responder.owed = FAB_OWED_ACK;
		list_remove(&qp->unacked);
	}
	if (list_is_empty(&qp->unacked))
		list_append(&context_of(qp)->unacked, &qp->unacked);
}

static void send_owed(struct fab_qp *qp)
{
	struct fab_responder *responder = &qp->responder;
	struct fab_packet packet;

	if (responder->owed == FAB_OWED_NONE)
		return;
	transport_header(qp, &packet);
	packet.msn = responder->msn;
	if (responder->owed == FAB_OWED_NAK) {
		packet.op = FAB_OP_NAK;
		packet.syndrome = responder->owed_nak;
		packet.psn = responder->psn;
		packet.rnr_timer = qp->attr.min_rnr_timer;
	} else {
		packet.op = FAB_OP_ACK;
		packet.psn = (responder->psn - 1) & FAB_PSN_MASK;
		packet.flags |= grant_is_given(qp) ? FAB_GRANTED : 0;
	}
	if (responder->owed == FAB_OWED_DEFERRED_ACK)
		list_remove(&qp->unacked);
	responder->owed = FAB_OWED_NONE;
	transport_send(context_of(qp), qp->path, &packet, NULL);
}

void ack_owe(struct fab_qp *qp)
{
	note_output(qp);
	qp->responder.owed = FAB_OWED_ACK;
}

void ack_send(struct fab_qp *qp)
{
	if (!qp->responder.n_responses)
		send_owed(qp);
}

void ack_nak(struct fab_qp *qp, enum fab_nak why)
{
	if (qp->responder.n_responses || qp->responder.owed == FAB_OWED_DEFERRED_ACK)
		note_output(qp);
	qp->responder.owed = FAB_OWED_NAK;
	qp->responder.owed_nak = (uint8_t)why;
	if (!qp->responder.n_responses)
		send_owed(qp);
}

/* --- turns ---------------------------------------------------------------- */

void ack_note_message(struct fab_qp *qp)
{
	struct fab_responder *responder = &qp->responder;

	if (responder->is_unanswered)
		responder->turns = 0;
	responder->is_unanswered = true;
	if (ack_takes_turns(qp))
		context_of(qp)->has_answer = true;
	held_show(context_of(qp));
}

bool ack_takes_turns(const struct fab_qp *qp)
{
	return qp->responder.turns == ACK_TURNS;
}

void ack_end_turns(struct fab_qp *qp)
{
	qp->responder.turns = 0;
	qp->responder.is_unanswered = false;
}

void ack_answered(struct fab_qp *qp)
{
	struct fab_responder *responder = &qp->responder;

	if (responder->is_unanswered && responder->turns < ACK_TURNS)
		responder->turns++;
	responder->is_unanswered = false;
	if (responder->owed == FAB_OWED_DEFERRED_ACK)
		send_owed(qp);
}

void ack_again(struct fab_qp *qp)
{
	ack_end_turns(qp);
	ack_owe(qp);
}

/* Return: whether the ACK is deferred. */
static bool defer(struct fab_qp *qp)
{
	struct fab_context *context = context_of(qp);
	struct fab_responder *responder = &qp->responder;

	if (responder->owed != FAB_OWED_ACK || !responder->is_unanswered || !ack_takes_turns(qp) ||
	    (context->carrier->coalesces && !context->carrier->coalesces(context)))
		return false;
	responder->owed = FAB_OWED_DEFERRED_ACK;
	if (list_is_empty(&context->deferred))
		context->deferred_polls = context->deferred_ticks = 0;
	list_append(&context->deferred, &qp->unacked);
	return true;
}

void ack_send_deferred(struct fab_context *context)
{
	struct fab_qp *qp;

	list_for_each_entry_safe (qp, &context->deferred, unacked) {
		send_owed(qp);
		ack_end_turns(qp);
	}
}

void ack_polled(struct fab_context *context)
{
	if (!list_is_empty(&context->deferred) && ++context->deferred_polls == ACK_POLLS)
		ack_send_deferred(context);
}

/* The first tick may come at once. */
void ack_ticked(struct fab_context *context)
{
	if (!list_is_empty(&context->deferred) && ++context->deferred_ticks == 2)
		ack_send_deferred(context);
}

void ack_congestion(struct fab_qp *qp)
{
	uint64_t now_ns = carrier_now_ns(context_of(qp));
	struct fab_responder *responder = &qp->responder;
	struct fab_packet packet;

	if (responder->cnp_ns && now_ns - responder->cnp_ns < CNP_INTERVAL_NS)
		return;
	responder->cnp_ns = now_ns;
	transport_header(qp, &packet);
	packet.service = FAB_SERVICE_CNP;
	packet.op = FAB_OP_CNP;
	transport_send(context_of(qp), qp->path, &packet, NULL);
}

/* --- responses ----------------------------------------------------------- */

static struct fab_response *response_at(const struct fab_qp *qp, unsigned int i)
{
	return &qp->responder.response[(qp->responder.first_response + i) % FAB_RD_MAX];
}

static void drop_first(struct fab_responder *responder)
{
	responder->first_response = (responder->first_response + 1) % FAB_RD_MAX;
	responder->n_responses--;
}

static void send_atomic_response(struct fab_qp *qp, const struct fab_response *response)
{
	struct fab_packet packet;

	transport_header(qp, &packet);
	packet.op = FAB_OP_ATOMIC_RESPONSE;
	packet.psn = response->psn;
	packet.msn = response->msn;
	packet.compare_add = response->value;
	transport_send(context_of(qp), qp->path, &packet, NULL);
}

/* Return: false if the memory is not mapped. */
static bool send_read_packet(struct fab_qp *qp, struct fab_response *response,
			     const struct fab_mr *mr)
{
	char *payload = context_of(qp)->scratch;
	struct fab_packet packet;

	transport_header(qp, &packet);
	packet.op = FAB_OP_READ_RESPONSE;
	packet.psn = response->psn;
	packet.msn = response->msn;
	packet.bytes = response->left < qp->payload_bytes ? response->left : qp->payload_bytes;
	if (!response->has_begun)
		packet.flags |= FAB_FIRST;
	if (packet.bytes == response->left)
		packet.flags |= FAB_LAST | (grant_is_given(qp) ? FAB_GRANTED : 0);
	if (packet.bytes && !memory_load(mr, response->addr, payload, packet.bytes))
		return false;
	transport_send(context_of(qp), qp->path, &packet, payload);
	response->has_begun = true;
	response->psn = (response->psn + 1) & FAB_PSN_MASK;
	response->n_psn--;
	response->addr += packet.bytes;
	response->left -= packet.bytes;
	return true;
}

/* The memory may have been deregistered or unmapped since the last part. Return: false if so. */
static bool send_read(struct fab_qp *qp, struct fab_response *response, uint32_t *budget)
{
	const struct fab_mr *mr = memory_find_remote(qp, response->srqn, response->rkey,
						     response->addr, response->left,
						     IBV_ACCESS_REMOTE_READ);

	if (!mr && response->left)
		return false;
	do {
		if (!send_read_packet(qp, response, mr))
			return false;
		*budget -= *budget < qp->payload_bytes ? *budget : qp->payload_bytes;
	} while (response->left && *budget);
	return true;
}

static void send_responses(struct fab_qp *qp, uint32_t budget)
{
	struct fab_responder *responder = &qp->responder;
	struct fab_response *response;

	while (responder->n_responses && budget) {
		response = response_at(qp, 0);
		if (response->op == FAB_OP_ATOMIC_RESPONSE) {
			send_atomic_response(qp, response);
			response->n_psn = 0;
		} else if (!send_read(qp, response, &budget)) {
			responder->n_responses = 0;
			responder->psn = response->psn; /* the NAK's */
			responder->owed = FAB_OWED_NAK;
			responder->owed_nak = FAB_NAK_REMOTE_ACCESS;
			responder->is_refused = true;
			responder->refused_event = IBV_EVENT_QP_ACCESS_ERR;
			return;
		}
		if (!response->n_psn)
			drop_first(responder);
	}
}

static void drop_response(struct fab_qp *qp, unsigned int i)
{
	for (; i + 1 < qp->responder.n_responses; i++)
		*response_at(qp, i) = *response_at(qp, i + 1);
	qp->responder.n_responses--;
}

bool ack_make_room(struct fab_qp *qp)
{
	unsigned int i;

	if (qp->responder.n_responses < qp->attr.max_dest_rd_atomic)
		return true;
	for (i = 0; i < qp->responder.n_responses; i++) {
		if (!response_at(qp, i)->is_again)
			continue;
		drop_response(qp, i);
		return true;
	}
	return false;
}

bool ack_add_response(struct fab_qp *qp, const struct fab_response *response)
{
	struct fab_responder *responder = &qp->responder;
	bool none_before = responder->n_responses == 0;

	if (responder->n_responses >= qp->attr.max_dest_rd_atomic)
		return false;
	if (!responder->response)
		responder->response = calloc(FAB_RD_MAX, sizeof(*responder->response));
	if (!responder->response)
		return false;
	*response_at(qp, responder->n_responses++) = *response;
	context_of(qp)->has_answer |= !response->is_again;
	if (none_before && !response->is_again)
		send_responses(qp, context_of(qp)->carrier->read_bytes);
	if (responder->n_responses || responder->is_refused)
		note_output(qp);
	return true;
}

struct fab_response *ack_find_response(struct fab_qp *qp, uint32_t end_psn, bool *ret_is_first)
{
	unsigned int i;

	for (i = 0; i < qp->responder.n_responses; i++) {
		struct fab_response *response = response_at(qp, i);

		*ret_is_first = i == 0;
		if (((response->psn + response->n_psn) & FAB_PSN_MASK) == end_psn)
			return response;
	}
	return NULL;
}

bool ack_send_some(struct fab_qp *qp)
{
	send_responses(qp, context_of(qp)->carrier->read_bytes);
	if (qp->responder.n_responses)
		return false;
	list_remove(&qp->unacked);
	if (!defer(qp))
		send_owed(qp);
	return true;
}
