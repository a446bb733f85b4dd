/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A message moves its sender as the call that sent it, and its receiver as an arrival, both by the
 * table of cm/fsm.c. Of what cannot be by that table, because its beginning was not seen or a
 * message was lost, the message itself tells where its sender is.
 */
#include "tools/purecm/flow_step.h"

#include <string.h>

#include "cm/action.h"
#include "cm/fsm.h"

#define COPY_NS 5000000

/* One kind of message, from end to end. */
struct effect {
	enum cm_event call;    /* what its sender does */
	enum cm_event arrival; /* what it means to the receiver */
	enum cm_event again;   /* to the receiver, of a repetition */
	enum cm_state sender;  /* where the sender is afterwards, whatever was seen of it before */
};

static const struct effect effects[FLOW_MESSAGES] = {
#define AT(name) [CM_ATTR_##name - CM_ATTR_REQ]
	AT(REQ) = {CM_CALL_REQ,	 CM_RX_REQ,  CM_RX_REQ_DUP, CM_REQ_SENT   },
	AT(REP) = { CM_CALL_REP,	 CM_RX_REP,  CM_RX_REP_DUP, CM_REP_SENT   },
	AT(RTU) = { CM_CALL_RTU,	 CM_RX_RTU,  CM_RX_RTU,     CM_ESTABLISHED},
	AT(REJ) = { CM_CALL_REJ,	 CM_RX_REJ,  CM_RX_REJ,     CM_IDLE       },
	AT(DREQ) = { CM_CALL_DREQ, CM_RX_DREQ, CM_RX_DREQ,	   CM_DREQ_SENT	},
	AT(DREP) = { CM_CALL_DREP, CM_RX_DREP, CM_RX_DREP,	   CM_TIMEWAIT   },
#undef AT
};

static const struct effect *effect_of(const struct cm_msg *msg)
{
	const struct effect *effect = &effects[msg->hdr.attr_id - CM_ATTR_REQ];

	return effect->call == effect->arrival ? NULL : effect;
}

static bool try_event(struct flow *flow, enum flow_end end, enum cm_event event)
{
	const struct cm_edge *edge = cm_edge_of(flow->state[end], event);

	if (edge->act)
		flow->state[end] = edge->to;
	return edge->act;
}

/* A REJ of reason 10 leads elsewhere, and a MRA tells which message it is about. */
static enum cm_event arrival_of(const struct cm_msg *msg, const struct effect *effect,
				unsigned int nth)
{
	if (msg->hdr.attr_id == CM_ATTR_REJ && msg->rej.reason == CM_REJ_STALE_CONNECTION)
		return CM_RX_REJ_STALE;
	return nth > 1 ? effect->again : effect->arrival;
}

static void move_sender(struct flow_step *step, const struct effect *effect)
{
	struct flow *flow = step->flow;

	if (!try_event(flow, step->from, effect->call) &&
	    !try_event(flow, step->from, CM_T_RESPONSE))
		flow->state[step->from] = effect->sender;
}

static void move_receiver(struct flow_step *step, const struct effect *effect,
			  const struct cm_msg *msg)
{
	const enum flow_end to = (enum flow_end) !step->from;
	struct flow *flow = step->flow;

	if (try_event(flow, to, arrival_of(msg, effect, step->nth)))
		return;
	/* What was lost before, or never seen, does not make this one a stray. */
	if (try_event(flow, to, effect->arrival))
		return;
	if (!flow->is_whole && msg->hdr.attr_id == CM_ATTR_DREQ)
		flow->state[to] = CM_DREQ_RCVD;
	else if (!flow->is_whole && msg->hdr.attr_id == CM_ATTR_RTU)
		flow->state[to] = CM_ESTABLISHED;
	else if (!flow->is_whole && msg->hdr.attr_id == CM_ATTR_REP)
		flow->state[to] = CM_REP_RCVD;
	else if (!flow->is_whole && msg->hdr.attr_id == CM_ATTR_DREP)
		flow->state[to] = CM_TIMEWAIT;
	else
		step->is_stray = true;
}

static void move_for_mra(struct flow_step *step, const struct cm_msg *msg)
{
	const bool is_to_req = msg->mra.message == CM_ANSWERED_REQ;
	const enum flow_end to = (enum flow_end) !step->from;

	try_event(step->flow, step->from, CM_CALL_MRA);
	step->is_stray = !try_event(step->flow, to, is_to_req ? CM_RX_MRA_REQ : CM_RX_MRA_REP);
}

/* --- outcome ------------------------------------------------------------- */

static enum flow_outcome outcome_of_rej(const struct flow_step *step)
{
	const struct flow *flow = step->flow;

	if (flow->outcome == FLOW_REJECTED || flow->outcome == FLOW_GIVEN_UP)
		return flow->outcome;
	/* Who takes back what it has itself asked for does not reject anything. */
	if (step->from == FLOW_ACTIVE && flow->outcome == FLOW_ASKED)
		return FLOW_GIVEN_UP;
	return FLOW_REJECTED;
}

static enum flow_outcome outcome_of(const struct flow_step *step, const struct cm_msg *msg)
{
	const enum flow_outcome now = step->flow->outcome;

	switch (msg->hdr.attr_id) {
	case CM_ATTR_REQ:
	case CM_ATTR_SIDR_REQ:
		return step->nth > 1 ? now : FLOW_ASKED;
	case CM_ATTR_REP:
		return now == FLOW_ASKED ? FLOW_ANSWERED : now;
	case CM_ATTR_RTU:
		return now == FLOW_CLOSED || now == FLOW_CLOSING ? now : FLOW_ESTABLISHED;
	case CM_ATTR_REJ:
		return outcome_of_rej(step);
	case CM_ATTR_DREQ:
		return now == FLOW_CLOSED ? now : FLOW_CLOSING;
	case CM_ATTR_DREP:
		return FLOW_CLOSED;
	case CM_ATTR_SIDR_REP:
		return msg->sidr_rep.status ? FLOW_REJECTED : FLOW_RESOLVED;
	}
	return now;
}

/* --- what it says -------------------------------------------------------- */

static void learn_cma(struct flow *flow, const uint8_t *private_data)
{
	struct cma_hdr cma;

	wire_decode(&cma_hdr_layout, private_data, &cma);
	if (!cma_service_is_ip(flow->service_id) || cma.cma_version != 0 ||
	    (cma.ip_version != 4 && cma.ip_version != 6))
		return;
	flow->cma = cma;
	flow->has_cma = true;
}

static void learn_req(struct flow *flow, const struct cm_req *req)
{
	flow->is_whole = true;
	flow->req = *req;
	flow->service_id = req->service_id;
	flow->qpn[FLOW_ACTIVE] = req->local_qpn;
	/* On InfiniBand the packet may bear LIDs only. */
	if (sighting_lid(&flow->gid[FLOW_ACTIVE]))
		flow->req.primary.local_lid = sighting_lid(&flow->gid[FLOW_ACTIVE]);
	learn_cma(flow, req->private_data);
}

static void learn_sidr_req(struct flow *flow, const struct cm_sidr_req *req)
{
	flow->is_whole = true;
	flow->sidr_req = *req;
	flow->service_id = req->service_id;
	learn_cma(flow, req->private_data);
}

static void learn_sidr_rep(struct flow *flow, const struct cm_sidr_rep *rep)
{
	flow->sidr_rep = *rep;
	flow->qpn[FLOW_PASSIVE] = rep->qpn;
	if (!flow->is_whole)
		flow->service_id = rep->service_id;
}

static void learn(struct flow *flow, const struct cm_msg *msg)
{
	switch (msg->hdr.attr_id) {
	case CM_ATTR_REQ:
		learn_req(flow, &msg->req);
		break;
	case CM_ATTR_REP:
		flow->rep = msg->rep;
		flow->qpn[FLOW_PASSIVE] = cm_rep_qpn(&msg->rep);
		break;
	case CM_ATTR_REJ:
		flow->rej = msg->rej;
		break;
	case CM_ATTR_MRA:
		flow->mra = msg->mra;
		break;
	case CM_ATTR_DREQ:
		flow->dreq = msg->dreq;
		break;
	case CM_ATTR_SIDR_REQ:
		learn_sidr_req(flow, &msg->sidr_req);
		break;
	case CM_ATTR_SIDR_REP:
		learn_sidr_rep(flow, &msg->sidr_rep);
		break;
	}
}

static uint64_t hash_of(const uint8_t mad[MAD_BYTES])
{
	uint64_t word, hash = UINT64_C(14695981039346656037);
	size_t i;

	for (i = 0; i < MAD_BYTES; i += sizeof(word)) {
		memcpy(&word, mad + i, sizeof(word));
		hash = (hash ^ word) * UINT64_C(1099511628211);
		hash ^= hash >> 32; /* the upper bits of a word count below, too */
	}
	return hash;
}

static void count(struct flow_step *step, uint64_t now_ns, const struct cm_msg *msg)
{
	struct flow_seen *seen = &step->flow->seen[msg->hdr.attr_id - CM_ATTR_REQ];

	if (seen->count == 0) {
		seen->by = step->from;
		seen->first_ns = now_ns;
		learn(step->flow, msg);
	}
	/* A DREQ of either end is no repetition of the other's. */
	if (seen->count < UINT16_MAX)
		seen->count++;
	step->nth = seen->by == step->from ? seen->count : 1;
	seen->last_ns = now_ns;
	step->flow->last_ns = now_ns;
}

/* Repetitions on the wire come after a tenth of a second at the earliest. A host that is traced
 * shows a message to itself twice, on its way out and in; twice the same way are two. */
static bool is_copy(struct flow_step *step, const struct sighting *sighting)
{
	struct flow *flow = step->flow;
	const uint64_t hash = hash_of(sighting->mad);
	const uint64_t since_ns = sighting->time_ns - flow->last_sent_ns[step->from];
	const bool is_elsewhere = sighting->way == WAY_UNKNOWN ||
				  sighting->way != flow->last_way[step->from];
	const bool is_same = flow->last_hash[step->from] == hash && since_ns < COPY_NS &&
			     is_elsewhere;

	flow->last_way[step->from] = sighting->way;
	flow->last_hash[step->from] = hash;
	flow->last_sent_ns[step->from] = sighting->time_ns;
	return is_same;
}

void flow_step_take(struct flow_step *step, const struct sighting *sighting,
		    const struct cm_msg *msg)
{
	const struct effect *effect = effect_of(msg);

	step->is_copy = is_copy(step, sighting);
	if (step->is_copy) {
		step->nth = step->flow->seen[msg->hdr.attr_id - CM_ATTR_REQ].count;
		memcpy(step->state, step->flow->state, sizeof(step->state));
		return;
	}
	count(step, sighting->time_ns, msg);
	if (msg->hdr.attr_id == CM_ATTR_MRA) {
		move_for_mra(step, msg);
	} else if (effect) {
		move_sender(step, effect);
		move_receiver(step, effect, msg);
	}
	if (!step->is_stray)
		step->flow->outcome = outcome_of(step, msg);
	memcpy(step->state, step->flow->state, sizeof(step->state));
}
