/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A message advances its sender by the call that sent it, and its receiver by the arrival event of
 * the guards in cm/guard.c, both with the table of cm/fsm.c. Where the table has no such
 * transition, because the beginning was not seen or a message was lost, the message itself
 * determines the state of its sender.
 */
#include "tools/purecm/flow.h"

#include "cm/action.h"
#include "cm/fsm.h"
#include "cm/guard.h"

static const struct flow_usual usual[FLOW_MESSAGES] = {
#define AT(name) [CM_ATTR_##name - CM_ATTR_REQ]
	AT(REP) = { CM_REQ_RCVD, CM_REQ_SENT },	   AT(RTU) = { CM_REP_RCVD, CM_REP_SENT },
	AT(REJ) = { CM_REQ_RCVD, CM_IDLE },	   AT(DREQ) = { CM_ESTABLISHED, CM_ESTABLISHED },
	AT(DREP) = { CM_DREQ_RCVD, CM_DREQ_SENT },
#undef AT
};

const struct flow_usual *flow_step_usual(enum cm_attr attr)
{
	return &usual[attr - CM_ATTR_REQ];
}

static bool try_event(struct cm_record *end, enum cm_event event)
{
	return event != CM_NO_EVENT && cm_record_step(end, event);
}

static bool try_event_in(struct cm_record *end, enum cm_state state, enum cm_event event)
{
	struct cm_record record = *end;

	cm_begin_in(&record, state);
	if (!try_event(&record, event))
		return false;
	*end = record;
	return true;
}

/* --- the guards of the receiver ------------------------------------------ */

/* The only connection that a message can name, which flow.c has found. */
struct receiver {
	struct cm_record record;
	bool has_request; /* this REQ is not the first */
};

static struct cm_record *find_receiver(const struct cm_arrival *in, uint32_t local_comm_id)
{
	struct receiver *receiver = in->arg;

	(void)local_comm_id;
	return &receiver->record;
}

static struct cm_record *find_by_peer(const struct cm_arrival *in, uint64_t guid, uint32_t id)
{
	struct receiver *receiver = in->arg;

	(void)guid, (void)id;
	return receiver->has_request || in->msg->hdr.attr_id == CM_ATTR_REJ ? &receiver->record
									    : NULL;
}

static struct cm_record *find_no_qpn(const struct cm_arrival *in, uint64_t guid, uint32_t qpn)
{
	(void)in, (void)guid, (void)qpn;
	return NULL;
}

static const struct cm_lookups lookups = { find_receiver, find_by_peer, find_no_qpn };

static bool is_answer_to_req(const struct cm_msg *msg)
{
	if (msg->hdr.attr_id == CM_ATTR_MRA)
		return msg->mra.message == CM_ANSWERED_REQ;
	return msg->hdr.attr_id == CM_ATTR_REJ && msg->rej.message == CM_ANSWERED_REQ;
}

/*
 * Messages may have been lost, or sent before the capture began, so ids and queue pairs in a
 * message are assumed to be known to the receiver.
 */
static enum cm_event arrival_of(const struct flow_step *step, const struct cm_msg *msg,
				bool is_first)
{
	const enum flow_end to = (enum flow_end) !step->from;
	struct receiver receiver = { step->flow->end[to], !is_first };
	struct cm_arrival in = { &lookups, &receiver, msg, *flow_gid(step->flow, step->from) };
	struct cm_found found;

	/*
	 * All except a REQ begin with both ids. An end that waits for a REP does not know the
	 * peer's.
	 */
	receiver.record.remote_comm_id = msg->rtu.local_comm_id;
	if (is_answer_to_req(msg) || (msg->hdr.attr_id == CM_ATTR_REP && is_first))
		receiver.record.remote_comm_id = 0;
	if (msg->hdr.attr_id == CM_ATTR_DREQ)
		receiver.record.local_qpn = msg->dreq.remote_qpn;
	return cm_guard(&in, &found);
}

/* --- both ends ----------------------------------------------------------- */

static void move_sender(struct flow_step *step, const struct cm_msg *msg)
{
	struct cm_record *end = &step->flow->end[step->from];
	enum cm_event call = cm_call_of(msg);

	if (!try_event(end, call) && !try_event(end, CM_T_RESPONSE))
		try_event_in(end, flow_step_usual(msg->hdr.attr_id)->sender, call);
}

/* Return: false if the message is not valid in its receiver's state. */
static bool move_receiver(struct flow_step *step, const struct cm_msg *msg)
{
	struct cm_record *end = &step->flow->end[!step->from];
	enum cm_event first = arrival_of(step, msg, true);

	if (try_event(end, arrival_of(step, msg, step->nth == 1)))
		return true;
	/* After a loss, or before the beginning was seen, this message is not a stray. */
	if (try_event(end, first))
		return true;
	return (!step->flow->is_whole || flow_is_one_sided(step->flow)) &&
	       try_event_in(end, flow_step_usual(msg->hdr.attr_id)->receiver, first);
}

/* --- outcome ------------------------------------------------------------- */

/* Nobody can listen at port 0, so a connection manager always refuses such a request. */
static bool is_ping(const struct flow *flow)
{
	return flow->has_cma && !flow->is_sidr && !(flow->service_id & 0xffff);
}

static enum flow_outcome outcome_of_rej(const struct flow_step *step, const struct cm_msg *msg)
{
	const struct flow *flow = step->flow;

	if (flow->outcome == FLOW_REJECTED || flow->outcome == FLOW_GIVEN_UP)
		return flow->outcome;
	/* An end that withdraws its own request does not reject anything. */
	if (step->from == FLOW_ACTIVE && flow->outcome == FLOW_ASKED)
		return FLOW_GIVEN_UP;
	if (flow->outcome == FLOW_ASKED && is_ping(flow) &&
	    msg->rej.reason == CM_REJ_INVALID_SERVICE_ID)
		return FLOW_PROBED;
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
		return outcome_of_rej(step, msg);
	case CM_ATTR_DREQ:
		/* It would be repeated if it were not answered by the end that was not seen. */
		if (flow_is_one_sided(step->flow))
			return step->nth > 1 ? FLOW_CLOSING : FLOW_CLOSED;
		return now == FLOW_CLOSED ? now : FLOW_CLOSING;
	case CM_ATTR_DREP:
		return FLOW_CLOSED;
	case CM_ATTR_SIDR_REP:
		if (msg->sidr_rep.status && !step->flow->is_whole)
			return now; /* maybe of a probe, whose request was not seen */
		return msg->sidr_rep.status ? FLOW_REJECTED : FLOW_RESOLVED;
	}
	return now;
}

/* --- contents ------------------------------------------------------------- */

static void learn_cma(struct flow *flow, const uint8_t *private_data)
{
	struct cma_hdr cma;

	if (!cma_service_is_ip(flow->service_id) || !cma_hdr_read(private_data, &cma))
		return;
	flow->cma = cma;
	flow->has_cma = true;
}

static void tell_qpn(struct flow *flow, enum flow_end end, uint32_t qpn)
{
	flow->end[end].local_qpn = qpn;
	flow->end[!end].remote_qpn = qpn;
}

static void learn_req(struct flow *flow, const struct cm_req *req)
{
	flow->is_whole = true;
	flow->req = *req;
	flow->service_id = req->service_id;
	tell_qpn(flow, FLOW_ACTIVE, req->local_qpn);
	/* On InfiniBand the packet may have LIDs only. */
	if (observation_lid(flow_gid(flow, FLOW_ACTIVE)))
		flow->req.primary.local_lid = observation_lid(flow_gid(flow, FLOW_ACTIVE));
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
	tell_qpn(flow, FLOW_PASSIVE, rep->qpn);
	if (!flow->is_whole)
		flow->service_id = rep->service_id;
}

static void learn_fields(struct flow *flow, const struct cm_msg *msg)
{
	switch (msg->hdr.attr_id) {
	case CM_ATTR_REQ:
		learn_req(flow, &msg->req);
		break;
	case CM_ATTR_REP:
		flow->rep = msg->rep;
		tell_qpn(flow, FLOW_PASSIVE, cm_rep_qpn(&msg->rep));
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

/* The kind without which a message is retransmitted; 0 if it needs no answer. */
static const enum cm_attr answers[FLOW_MESSAGES] = {
	[CM_ATTR_REQ - CM_ATTR_REQ] = CM_ATTR_REP,
	[CM_ATTR_REP - CM_ATTR_REQ] = CM_ATTR_RTU,
	[CM_ATTR_DREQ - CM_ATTR_REQ] = CM_ATTR_DREP,
};

static void count_around_answer(struct flow_step *step, enum cm_attr attr, uint64_t now_ns)
{
	struct flow_seen *seen = &step->flow->seen[attr - CM_ATTR_REQ];
	const enum cm_attr to = answers[attr - CM_ATTR_REQ];
	const struct flow_seen *answer = to ? flow_seen(step->flow, to) : NULL;

	if (!answer)
		return;
	if (!answer->count)
		seen->n_before++;
	else if (step->from == seen->by && now_ns - answer->first_ns > FLOW_CROSSING_NS)
		seen->n_after++;
}

static void count_msg(struct flow_step *step, uint64_t now_ns, const struct cm_msg *msg)
{
	struct flow_seen *seen = &step->flow->seen[msg->hdr.attr_id - CM_ATTR_REQ];

	if (seen->count == 0) {
		seen->by = step->from;
		seen->first_ns = now_ns;
		learn_fields(step->flow, msg);
	}
	if (msg->hdr.attr_id == CM_ATTR_MRA && !step->flow->mra_ns[step->from])
		step->flow->mra_ns[step->from] = now_ns;
	/* A DREQ from one end is not a retransmission of the other end's. */
	if (seen->count < UINT16_MAX) {
		seen->count++;
		count_around_answer(step, msg->hdr.attr_id, now_ns);
	}
	step->nth = seen->by == step->from ? seen->count : 1;
	seen->last_ns = now_ns;
	step->flow->last_ns = now_ns;
}

/*
 * A retransmission comes at least 100 ms after the last transmission. A trace shows each message
 * from a host to itself twice, outgoing and incoming; the same direction twice is two messages.
 */
static bool is_copy(struct flow_step *step, const struct observation *observation)
{
	struct flow *flow = step->flow;
	const uint64_t hash = hash_bytes(observation->mad, MAD_BYTES);
	const uint64_t since_ns = observation->time_ns - flow->last_sent_ns[step->from];
	const bool is_elsewhere = observation->way == WAY_UNKNOWN ||
				  observation->way != flow->last_way[step->from];
	const bool is_same = flow->last_hash[step->from] == hash && since_ns < FLOW_COPY_NS &&
			     is_elsewhere;

	flow->last_way[step->from] = observation->way;
	flow->last_hash[step->from] = hash;
	flow->last_sent_ns[step->from] = observation->time_ns;
	return is_same;
}

static void tell_states(struct flow_step *step)
{
	unsigned int end;

	for (end = 0; end < FLOW_ENDS; end++)
		step->state[end] = (enum cm_state)step->flow->end[end].state;
}

void flow_step_take(struct flow_step *step, const struct observation *observation,
		    const struct cm_msg *msg)
{
	if (observation->network)
		step->flow->network = observation->network;
	step->is_copy = is_copy(step, observation);
	if (step->is_copy) {
		step->nth = step->flow->seen[msg->hdr.attr_id - CM_ATTR_REQ].count;
		tell_states(step);
		return;
	}
	count_msg(step, observation->time_ns, msg);
	if (!step->flow->is_sidr && cm_call_of(msg) != CM_NO_EVENT) {
		move_sender(step, msg);
		step->is_stray = !move_receiver(step, msg);
	}
	if (!step->is_stray)
		step->flow->outcome = outcome_of(step, msg);
	tell_states(step);
}
