/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The flows: two hash tables, one for each end by (its GID, its comm id), and the assignment of
 * messages. The effect of a message on its flow is in flow_step.c.
 */
#include "tools/purecm/flow.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mad/talk.h"
#include "tools/purecm/field.h"

#define FLOWS_MIN    64
#define SPEAKERS_MIN 64

/* A sender that has sent any message. */
struct speaker {
	struct mad_gid gid;
	struct hash_node by_gid;
};

struct flows {
	struct flow **flow; /* flow number n is at (n - 1) % room */
	uint32_t max;
	bool forgets;
	uint32_t count; /* total ever begun */
	uint32_t room;
	struct hash by_name[FLOW_ENDS];
	struct hash speakers;
};

/* Lookup key of a flow: an end, and that end's comm id. */
struct key {
	const struct mad_gid *gid;
	uint32_t comm_id;
	bool is_sidr;
};

struct flows *flows_new(uint32_t max, bool forgets)
{
	struct flows *flows = calloc(1, sizeof(*flows));

	if (!flows)
		return NULL;
	flows->max = max;
	flows->forgets = forgets;
	if (hash_init(&flows->by_name[FLOW_ACTIVE], FLOWS_MIN) ||
	    hash_init(&flows->by_name[FLOW_PASSIVE], FLOWS_MIN) ||
	    hash_init(&flows->speakers, SPEAKERS_MIN)) {
		flows_free(flows);
		return NULL;
	}
	return flows;
}

void flows_free(struct flows *flows)
{
	struct hash_node *node, *after;
	uint32_t i;

	if (!flows)
		return;
	for (i = 0; i < flows->room; i++)
		free(flows->flow[i]);
	hash_for_each_safe (node, after, &flows->speakers)
		free(container_of(node, struct speaker, by_gid));
	hash_fini(&flows->speakers);
	hash_fini(&flows->by_name[FLOW_ACTIVE]);
	hash_fini(&flows->by_name[FLOW_PASSIVE]);
	free(flows->flow);
	free(flows);
}

uint32_t flows_count(const struct flows *flows)
{
	return flows->count;
}

struct flow *flows_get(const struct flows *flows, uint32_t index)
{
	assert(index < flows->count);

	if (flows->count - index > flows->room)
		return NULL;
	return flows->flow[index % flows->room];
}

/* --- tables -------------------------------------------------------------- */

bool flows_has_spoken(const struct flows *flows, const struct mad_gid *gid)
{
	struct hash_node *node;

	hash_for_each_match (node, &flows->speakers, hash_bytes(gid, sizeof(*gid)))
		if (memcmp(&container_of(node, struct speaker, by_gid)->gid, gid, sizeof(*gid)) ==
		    0)
			return true;
	return false;
}

static int note_speaker(struct flows *flows, const struct mad_gid *gid)
{
	struct speaker *speaker;

	if (flows->forgets || flows->speakers.n_nodes == flows->max || flows_has_spoken(flows, gid))
		return 0;
	if (hash_reserve(&flows->speakers, flows->speakers.n_nodes + 1))
		return -ENOMEM;
	speaker = calloc(1, sizeof(*speaker));
	if (!speaker)
		return -ENOMEM;
	speaker->gid = *gid;
	hash_insert(&flows->speakers, &speaker->by_gid, hash_bytes(gid, sizeof(*gid)));
	return 0;
}

static uint64_t hash_name(const struct mad_gid *gid, uint32_t comm_id)
{
	struct {
		struct mad_gid gid;
		uint32_t comm_id;
	} name = { *gid, comm_id };

	return hash_bytes(&name, sizeof(name));
}

/* The latest flow comes first, because comm ids may be reused. */
static struct flow *find_flow(const struct flows *flows, enum flow_end end, const struct key *key)
{
	struct hash_node *node;
	struct flow *flow;

	if (!key->comm_id)
		return NULL;
	hash_for_each_match (node, &flows->by_name[end], hash_name(key->gid, key->comm_id)) {
		flow = container_of(node, struct flow, by_name[end]);
		if (flow->end[end].local_comm_id == key->comm_id && flow->is_sidr == key->is_sidr &&
		    memcmp(flow_gid(flow, end), key->gid, sizeof(*key->gid)) == 0)
			return flow;
	}
	return NULL;
}

static void name_end(struct flows *flows, struct flow *flow, enum flow_end end, uint32_t comm_id)
{
	if (!comm_id || flow->end[end].local_comm_id)
		return;
	flow->end[end].local_comm_id = comm_id;
	flow->end[!end].remote_comm_id = comm_id;
	hash_insert(&flows->by_name[end], &flow->by_name[end],
		    hash_name(flow_gid(flow, end), comm_id));
}

static int forget_oldest(struct flows *flows)
{
	struct flow **oldest = &flows->flow[flows->count % flows->room];

	if (!flows->forgets)
		return -ENOBUFS;
	hash_remove(&flows->by_name[FLOW_ACTIVE], &(*oldest)->by_name[FLOW_ACTIVE]);
	hash_remove(&flows->by_name[FLOW_PASSIVE], &(*oldest)->by_name[FLOW_PASSIVE]);
	free(*oldest);
	*oldest = NULL;
	return 0;
}

static int make_room(struct flows *flows)
{
	uint32_t room = flows->room ? flows->room * 2 : 64;
	struct flow **more;

	if (flows->count < flows->room)
		return 0;
	if (flows->room >= flows->max)
		return forget_oldest(flows);
	if (room > flows->max)
		room = flows->max;
	more = realloc(flows->flow, room * sizeof(*more));
	if (!more)
		return -ENOMEM;
	memset(more + flows->room, 0, (room - flows->room) * sizeof(*more));
	flows->flow = more;
	flows->room = room;
	return 0;
}

static int add_flow(struct flows *flows, const struct observation *observation, enum flow_end from,
		    struct flow **ret)
{
	int err = make_room(flows);
	struct flow *flow;

	if (err)
		return err;
	if (hash_reserve(&flows->by_name[FLOW_ACTIVE], flows->by_name[FLOW_ACTIVE].n_nodes + 1) ||
	    hash_reserve(&flows->by_name[FLOW_PASSIVE], flows->by_name[FLOW_PASSIVE].n_nodes + 1))
		return -ENOMEM;
	flow = calloc(1, sizeof(*flow));
	if (!flow)
		return -ENOMEM;
	flow->number = flows->count + 1;
	flow->end[from].path = (struct mad_path){ .grh = true, .dgid = observation->dst };
	flow->end[!from].path = (struct mad_path){ .grh = true, .dgid = observation->src };
	flow->end[FLOW_ACTIVE].active = true;
	flow->first_ns = observation->time_ns;
	flow->outcome = FLOW_FRAGMENT;
	flows->flow[flows->count++ % flows->room] = flow;
	*ret = flow;
	return 0;
}

/* --- which flow ---------------------------------------------------------- */

static bool is_repetition(const struct flow *flow, const struct cm_req *req)
{
	return flow->req.starting_psn == req->starting_psn &&
	       flow->req.local_qpn == req->local_qpn && flow->service_id == req->service_id;
}

static int take_req(struct flows *flows, const struct observation *observation,
		    const struct cm_req *req, struct flow_step *step)
{
	const struct key key = { &observation->src, req->local_comm_id, false };
	int err;

	step->from = FLOW_ACTIVE;
	step->flow = find_flow(flows, FLOW_ACTIVE, &key);
	if (step->flow && is_repetition(step->flow, req))
		return 0;
	err = add_flow(flows, observation, FLOW_ACTIVE, &step->flow);
	if (!err)
		name_end(flows, step->flow, FLOW_ACTIVE, req->local_comm_id);
	return err;
}

/* SIDR: both messages have the requester's id. */
static int take_sidr(struct flows *flows, const struct observation *observation,
		     uint32_t request_id, struct flow_step *step)
{
	const bool asks = step->from == FLOW_ACTIVE;
	const struct key key = { asks ? &observation->src : &observation->dst, request_id, true };
	int err;

	step->flow = find_flow(flows, FLOW_ACTIVE, &key);
	if (step->flow && (!asks || step->flow->outcome == FLOW_ASKED))
		return 0;
	err = add_flow(flows, observation, step->from, &step->flow);
	if (err)
		return err;
	step->flow->is_sidr = true;
	name_end(flows, step->flow, FLOW_ACTIVE, request_id);
	return 0;
}

/* Both ends on one host may have the same comm id, so the sender's own id must match too. */
static bool ids_fit(const struct flow *flow, enum flow_end from, uint32_t local, uint32_t remote)
{
	uint32_t its_local, its_remote;

	if (!flow)
		return false;
	its_local = flow->end[from].local_comm_id;
	its_remote = flow->end[!from].local_comm_id;
	return (!local || !its_local || its_local == local) &&
	       (!remote || !its_remote || its_remote == remote);
}

static struct flow *find_from(const struct flows *flows, const struct observation *observation,
			      enum flow_end from, uint32_t local, uint32_t remote)
{
	const struct key sender = { &observation->src, local, false };
	const struct key receiver = { &observation->dst, remote, false };
	struct flow *flow = find_flow(flows, !from, &receiver);

	if (ids_fit(flow, from, local, remote) &&
	    memcmp(flow_gid(flow, from), &observation->src, sizeof(observation->src)) == 0)
		return flow;
	flow = find_flow(flows, from, &sender);
	return ids_fit(flow, from, local, remote) ? flow : NULL;
}

/*
 * A REP, or a response to a REQ, comes from the passive end, and so on. Return: the most likely
 * sender.
 */
static enum flow_end likely_sender(const struct cm_msg *msg)
{
	switch (msg->hdr.attr_id) {
	case CM_ATTR_REP:
		return FLOW_PASSIVE;
	case CM_ATTR_MRA:
	case CM_ATTR_REJ: /* in both, the field "message" is at the same place */
		return msg->rej.message == CM_ANSWERED_REQ ? FLOW_PASSIVE : FLOW_ACTIVE;
	}
	return FLOW_ACTIVE;
}

static int take_other(struct flows *flows, const struct observation *observation,
		      const struct cm_msg *msg, struct flow_step *step)
{
	/* All of them begin with both comm ids. */
	const uint32_t local = msg->rtu.local_comm_id, remote = msg->rtu.remote_comm_id;
	const enum flow_end likely = likely_sender(msg);
	int err;

	step->from = likely;
	step->flow = find_from(flows, observation, likely, local, remote);
	if (!step->flow) {
		step->from = (enum flow_end) !likely;
		step->flow = find_from(flows, observation, step->from, local, remote);
	}
	if (!step->flow) {
		step->from = likely;
		err = add_flow(flows, observation, likely, &step->flow);
		if (err)
			return err;
		name_end(flows, step->flow, (enum flow_end) !likely, remote);
	}
	name_end(flows, step->flow, step->from, local);
	return 0;
}

int flows_take(struct flows *flows, const struct observation *observation, const struct cm_msg *msg,
	       struct flow_step *ret)
{
	struct flow_step step = { .from = FLOW_ACTIVE };
	int err = note_speaker(flows, &observation->src);

	if (err)
		return err;
	switch (msg->hdr.attr_id) {
	case CM_ATTR_REQ:
		err = take_req(flows, observation, &msg->req, &step);
		break;
	case CM_ATTR_SIDR_REP:
		step.from = FLOW_PASSIVE;
		err = take_sidr(flows, observation, msg->sidr_rep.request_id, &step);
		break;
	case CM_ATTR_SIDR_REQ:
		err = take_sidr(flows, observation, msg->sidr_req.request_id, &step);
		break;
	default:
		err = take_other(flows, observation, msg, &step);
	}
	if (err)
		return err;
	flow_step_take(&step, observation, msg);
	*ret = step;
	return 0;
}

/* --- words ---------------------------------------------------------------- */

static const struct {
	const char *word;
	const char *text;
} outcomes[FLOW_N_OUTCOMES] = {
#define X(name, word, text) [FLOW_##name] = { word, text },
	FLOW_OUTCOMES(X)
#undef X
};

const struct flow_seen *flow_seen(const struct flow *flow, enum cm_attr attr)
{
	return &flow->seen[attr - CM_ATTR_REQ];
}

const char *flow_outcome_word(enum flow_outcome outcome)
{
	return outcomes[outcome].word;
}

const char *flow_outcome_text(enum flow_outcome outcome)
{
	return outcomes[outcome].text;
}

bool flow_has_failed(const struct flow *flow)
{
	switch (flow->outcome) {
	case FLOW_ASKED:
	case FLOW_ANSWERED:
	case FLOW_REJECTED:
	case FLOW_GIVEN_UP:
	case FLOW_CLOSING:
		return true;
	case FLOW_ESTABLISHED:
	case FLOW_CLOSED:
	case FLOW_RESOLVED:
	case FLOW_PROBED:
	case FLOW_FRAGMENT:
	case FLOW_N_OUTCOMES:
		break;
	}
	return false;
}

static unsigned int port_of(const struct flow *flow, enum flow_end end)
{
	if (!flow->has_cma)
		return 0;
	return end == FLOW_ACTIVE ? flow->cma.src_port : flow->service_id & 0xffff;
}

const char *flow_who(const struct flow *flow, enum flow_end end, char buf[FLOW_WHO_BYTES])
{
	unsigned int port = port_of(flow, end);
	struct mad_gid gid = *flow_gid(flow, end);
	char who[WHO_BYTES];

	who_str(&gid, who);
	if (!port)
		snprintf(buf, FLOW_WHO_BYTES, "%s", who);
	else if (inet_pton(AF_INET6, who, gid.raw) == 1)
		snprintf(buf, FLOW_WHO_BYTES, "[%s]:%u", who, port);
	else
		snprintf(buf, FLOW_WHO_BYTES, "%s:%u", who, port);
	return buf;
}

const char *flow_service(const struct flow *flow, char buf[FLOW_WHO_BYTES])
{
	const char *space = service_space(flow->service_id);

	if (space)
		snprintf(buf, FLOW_WHO_BYTES, "%s port %u", space,
			 (unsigned int)(flow->service_id & 0xffff));
	else if (flow->service_id == MAD_PROBE_SERVICE_ID)
		snprintf(buf, FLOW_WHO_BYTES, "purecm's probe of a path");
	else
		snprintf(buf, FLOW_WHO_BYTES, "service 0x%" PRIx64, flow->service_id);
	return buf;
}

const char *flow_title(const struct flow *flow, char buf[FLOW_TITLE_BYTES])
{
	char active[FLOW_WHO_BYTES], passive[FLOW_WHO_BYTES], service[FLOW_WHO_BYTES];

	snprintf(buf, FLOW_TITLE_BYTES, "#%u %s to %s, %s", flow->number,
		 flow_who(flow, FLOW_ACTIVE, active), flow_who(flow, FLOW_PASSIVE, passive),
		 flow_service(flow, service));
	return buf;
}
