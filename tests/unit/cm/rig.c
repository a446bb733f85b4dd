/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One core on a rig: see rig.h.
 */
#include "tests/unit/cm/rig.h"

#include <string.h>

#include "tests/unit/cm/inputs.h"
#include "tests/unit/cm/text.h"
#include "tests/unit/test.h"

static const struct mad_gid our_gid = { .raw = { [10] = 0xff, 0xff, 10, 0, 0, 1 } };
static const struct mad_gid peer_gid = { .raw = { [10] = 0xff, 0xff, 10, 0, 0, 2 } };

void rig_init(struct rig *rig)
{
	*rig = (struct rig){
		.now.ns = 1000000000,
		.our_qpn = RIG_OUR_QPN,
		.peer_comm_id = 0x70000001,
		.peer_qpn = 0x000222,
		.path = { .grh = true, .dgid = peer_gid },
	};
	ck_assert_int_eq(cm_core_init(&rig->core, 0x5eed), 0);
	cm_port_init(&rig->port, RIG_OUR_GUID, &our_gid);
	ck_assert_int_eq(cm_core_serve(&rig->core, &rig->service, RIG_SERVICE), 0);
}

void rig_fini(struct rig *rig)
{
	cm_core_fini(&rig->core);
}

enum cm_state rig_state(const struct rig *rig)
{
	struct cm_key key = { .id = rig->comm_id };
	struct cm_node *node = cm_index_find(&rig->core.by_local, &key);

	return node ? container_of(node, struct cm_conn, by_local)->state : RIG_GONE;
}

/* --- messages ------------------------------------------------------------ */

static struct cm_msg our_req(const struct rig *rig)
{
	struct cm_msg msg;

	cm_msg_init(&msg, CM_ATTR_REQ, 0);
	msg.req.service_id = RIG_SERVICE;
	msg.req.local_qpn = rig->our_qpn;
	msg.req.starting_psn = RIG_OUR_PSN;
	msg.req.responder_resources = 8;
	msg.req.initiator_depth = 7;
	msg.req.retry_count = 5;
	msg.req.rnr_retry_count = 4;
	msg.req.path_mtu = 3;
	msg.req.primary.local_gid = our_gid;
	msg.req.primary.remote_gid = peer_gid;
	msg.req.primary.hop_limit = 63;
	msg.req.primary.flow_label = 0x12345;
	msg.req.primary.traffic_class = 0x20;
	msg.req.primary.sl = 3;
	return msg;
}

static struct cm_msg our_rep(const struct rig *rig)
{
	struct cm_msg msg;

	cm_msg_init(&msg, CM_ATTR_REP, 0);
	msg.rep.local_qpn = rig->our_qpn;
	msg.rep.starting_psn = RIG_OUR_PSN;
	msg.rep.responder_resources = 6;
	msg.rep.initiator_depth = 5;
	return msg;
}

static struct cm_msg our_sidr_req(void)
{
	struct cm_msg msg;

	cm_msg_init(&msg, CM_ATTR_SIDR_REQ, 0);
	msg.sidr_req.service_id = RIG_SERVICE;
	msg.sidr_req.pkey = 0xffff;
	memcpy(msg.sidr_req.private_data, "where?", 6);
	return msg;
}

static struct cm_msg our_sidr_rep(const struct rig *rig)
{
	struct cm_msg msg;

	cm_msg_init(&msg, CM_ATTR_SIDR_REP, 0);
	msg.sidr_rep.qpn = rig->our_qpn;
	msg.sidr_rep.qkey = RIG_QKEY;
	memcpy(msg.sidr_rep.private_data, "here", 4);
	return msg;
}

/* Return: false for verbs without a message. */
static bool our_msg(const struct rig *rig, enum cm_event verb, struct cm_msg *ret)
{
	if (verb == CM_CALL_REQ)
		*ret = our_req(rig);
	else if (verb == CM_CALL_REP)
		*ret = our_rep(rig);
	else if (verb == CM_CALL_SIDR_REQ)
		*ret = our_sidr_req();
	else if (verb == CM_CALL_SIDR_REP)
		*ret = our_sidr_rep(rig);
	else
		return false;
	return true;
}

static void fill_peer_req(const struct rig *rig, struct cm_req *req)
{
	req->local_comm_id = rig->peer_comm_id;
	req->service_id = RIG_SERVICE;
	req->local_ca_guid = RIG_PEER_GUID;
	req->local_qpn = rig->peer_qpn;
	req->starting_psn = RIG_PEER_PSN;
	req->responder_resources = 4;
	req->initiator_depth = 3;
	req->remote_cm_response_timeout = 20;
	req->local_cm_response_timeout = 20;
	req->max_cm_retries = 15;
	req->retry_count = 7;
	req->rnr_retry_count = 6;
	req->path_mtu = 3;
	req->primary.local_gid = peer_gid;
	req->primary.remote_gid = our_gid;
	req->primary.hop_limit = 62;
	req->primary.flow_label = 0x54321;
	req->primary.traffic_class = 0x40;
	req->primary.sl = 5;
	req->primary.local_ack_timeout = 19;
}

static void fill_peer_rep(const struct rig *rig, struct cm_rep *rep)
{
	rep->local_comm_id = rig->peer_comm_id;
	rep->remote_comm_id = rig->comm_id;
	rep->local_ca_guid = RIG_PEER_GUID;
	rep->local_qpn = rig->peer_qpn;
	rep->starting_psn = RIG_PEER_PSN;
	rep->responder_resources = 2;
	rep->initiator_depth = 1;
	rep->rnr_retry_count = 3;
	rep->target_ack_delay = 15;
}

static void fill_peer_rej(const struct rig *rig, struct cm_rej *rej)
{
	bool knows_peer = rig->conn && rig->conn->remote_comm_id;

	rej->local_comm_id = rig->peer_comm_id;
	rej->remote_comm_id = rig->comm_id;
	rej->message = knows_peer ? CM_ANSWERED_OTHER : CM_ANSWERED_REQ;
	rej->reason = CM_REJ_CONSUMER;
}

struct cm_msg rig_msg(const struct rig *rig, enum cm_attr attr)
{
	struct cm_msg msg;

	cm_msg_init(&msg, attr, 0x7777);
	if (attr == CM_ATTR_REQ) {
		fill_peer_req(rig, &msg.req);
	} else if (attr == CM_ATTR_REP) {
		fill_peer_rep(rig, &msg.rep);
	} else if (attr == CM_ATTR_REJ) {
		fill_peer_rej(rig, &msg.rej);
	} else if (attr == CM_ATTR_SIDR_REQ) {
		msg.sidr_req.request_id = rig->peer_comm_id;
		msg.sidr_req.service_id = RIG_SERVICE;
	} else if (attr == CM_ATTR_SIDR_REP) {
		msg.sidr_rep.request_id = rig->comm_id;
		msg.sidr_rep.service_id = RIG_SERVICE;
		msg.sidr_rep.qpn = rig->peer_qpn;
		msg.sidr_rep.qkey = RIG_QKEY;
	} else {
		/* MRA, RTU, DREQ and DREP all begin with the two ids. */
		msg.rtu.local_comm_id = rig->peer_comm_id;
		msg.rtu.remote_comm_id = rig->comm_id;
	}
	if (attr == CM_ATTR_DREQ)
		msg.dreq.remote_qpn = rig->our_qpn;
	if (attr == CM_ATTR_MRA)
		msg.mra.service_timeout = 20;
	return msg;
}

struct cm_msg rig_sent_msg(const struct rig *rig, unsigned int i)
{
	struct cm_msg msg;

	ck_assert_uint_lt(i, rig->out.n_sends);
	ck_assert_int_eq(cm_msg_decode(rig->out.send[i].mad, MAD_BYTES, &msg), 0);
	return msg;
}

const char *rig_sent(struct rig *rig)
{
	return text_of_sends(&rig->out, rig->sent, sizeof(rig->sent));
}

const char *rig_reported(struct rig *rig)
{
	return text_of_reports(&rig->out, rig->reported, sizeof(rig->reported));
}

/* --- the four ways to drive it ------------------------------------------- */

static void note_step(const struct rig *rig, bool begins)
{
	if (rig->in_step)
		rig->in_step(begins);
}

int rig_call(struct rig *rig, enum cm_event verb)
{
	struct cm_msg msg;
	struct cm_args args = {
		.port = &rig->port, .path = &rig->path, .packet_life_time = 18, .msg = &msg
	};
	bool has_msg = our_msg(rig, verb, &msg);
	int err;

	note_step(rig, true);
	err = cm_core_call(&rig->core, rig->conn, verb, has_msg ? &args : NULL, rig->now,
			   &rig->out);
	note_step(rig, false);
	if (!err && (verb == CM_CALL_DESTROY || verb == CM_CALL_FORGET))
		rig->conn = NULL;
	return err;
}

void rig_deliver(struct rig *rig, const struct cm_msg *msg)
{
	uint8_t mad[MAD_BYTES];

	cm_msg_encode(msg, mad);
	ck_assert_int_eq(cm_core_reserve(&rig->core), 0);
	note_step(rig, true);
	cm_core_input(&rig->core, &rig->port, &rig->path, mad, sizeof(mad), rig->now, &rig->out);
	note_step(rig, false);
}

bool rig_timer(struct rig *rig)
{
	struct cm_time deadline = cm_core_deadline(&rig->core);
	bool was_due;

	if (deadline.ns != UINT64_MAX)
		rig->now = deadline;
	note_step(rig, true);
	was_due = cm_core_expire(&rig->core, rig->now, &rig->out);
	note_step(rig, false);
	return was_due;
}

/* --- reaching a state ---------------------------------------------------- */

/* The last step to a state, and the state before it; without a name there is no step. */
struct way {
	enum cm_state from;
	const char *input;
};

static const struct way active_ways[CM_N_STATES] = {
	[CM_REQ_SENT] = { CM_IDLE, "local REQ" },
	[CM_MRA_REQ_RCVD] = { CM_REQ_SENT, "MRA(REQ)" },
	[CM_REP_RCVD] = { CM_REQ_SENT, "REP" },
	[CM_MRA_REP_SENT] = { CM_REP_RCVD, "local MRA" },
	[CM_ESTABLISHED] = { CM_REP_RCVD, "local RTU" },
	[CM_DREQ_SENT] = { CM_ESTABLISHED, "local DREQ" },
	[CM_DREQ_RCVD] = { CM_ESTABLISHED, "DREQ" },
	[CM_TIMEWAIT] = { CM_DREQ_SENT, "DREP" },
	[CM_SIDR_REQ_SENT] = { CM_IDLE, "local SIDR_REQ" },
};

static const struct way passive_ways[CM_N_STATES] = {
	[CM_REQ_RCVD] = { CM_IDLE, "REQ" },
	[CM_MRA_REQ_SENT] = { CM_REQ_RCVD, "local MRA" },
	[CM_REP_SENT] = { CM_REQ_RCVD, "local REP" },
	[CM_MRA_REP_RCVD] = { CM_REP_SENT, "MRA(REP)" },
	[CM_ESTABLISHED] = { CM_REP_SENT, "RTU" },
	[CM_DREQ_SENT] = { CM_ESTABLISHED, "local DREQ" },
	[CM_DREQ_RCVD] = { CM_ESTABLISHED, "DREQ" },
	[CM_TIMEWAIT] = { CM_DREQ_RCVD, "local DREP" },
	[CM_IDLE] = { CM_TIMEWAIT, "timer" },
	[CM_SIDR_REQ_RCVD] = { CM_IDLE, "SIDR_REQ" },
	[CM_SIDR_REP_SENT] = { CM_SIDR_REQ_RCVD, "local SIDR_REP" },
};

bool rig_can_reach(enum cm_state state, bool passive)
{
	if (passive)
		return passive_ways[state].input;
	return state == CM_IDLE || active_ways[state].input;
}

static void begin(struct rig *rig)
{
	rig->conn = cm_core_conn_new(&rig->core, rig);
	ck_assert_ptr_nonnull(rig->conn);
	rig->comm_id = rig->conn->local_comm_id;
}

static void receive_request(struct rig *rig, const char *input)
{
	rig_input(rig, input);
	ck_assert_uint_eq(rig->out.n_reports, 1);
	rig->conn = rig->out.report[0].conn;
	rig->conn->owner = rig;
	rig->comm_id = rig->conn->local_comm_id;
}

void rig_reach(struct rig *rig, enum cm_state state, bool passive)
{
	const struct way *way = passive ? &passive_ways[state] : &active_ways[state];

	ck_assert(rig_can_reach(state, passive));
	if (passive && (state == CM_REQ_RCVD || state == CM_SIDR_REQ_RCVD)) {
		receive_request(rig, way->input);
	} else if (!passive && state == CM_IDLE) {
		begin(rig);
	} else {
		rig_reach(rig, way->from, passive);
		rig_input(rig, way->input);
	}
	ck_assert_str_eq(cm_state_str(rig_state(rig)), cm_state_str(state));
}

struct cm_conn *rig_establish_other(struct rig *rig, uint32_t peer_comm_id, uint32_t peer_qpn)
{
	struct rig before = { .conn = rig->conn,
			      .comm_id = rig->comm_id,
			      .peer_comm_id = rig->peer_comm_id,
			      .peer_qpn = rig->peer_qpn };
	struct cm_conn *other;

	rig->peer_comm_id = peer_comm_id;
	rig->peer_qpn = peer_qpn;
	rig_reach(rig, CM_ESTABLISHED, false);
	other = rig->conn;
	rig->conn = before.conn;
	rig->comm_id = before.comm_id;
	rig->peer_comm_id = before.peer_comm_id;
	rig->peer_qpn = before.peer_qpn;
	return other;
}
