/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The actions on the edges of the state machine: build messages from the connection, store in it
 * the values of the peer's messages. See action.h.
 */
#include "cm/action.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "cm/guard.h"
#include "cm/peer.h"

/* Bounds of the timeout that a peer can set for our retransmissions of a REP. */
#define REP_GIVE_UP_MIN_MS  4000
#define REP_GIVE_UP_MAX_MS  50000

#define TIMEWAIT_MAX	    24 /* encoded, 69 s; limits what a peer can ask for */

#define MRA_SERVICE_TIMEOUT 24 /* encoded, 69 s: what the kernel asks for */

/* --- effects ------------------------------------------------------------- */

static uint8_t *send_mad(struct cm_context *ctx, struct cm_port *port, const struct mad_path *path)
{
	struct cm_effects *out = ctx->out;
	struct cm_send *send;

	assert(out->n_sends < CM_SENDS_MAX);

	send = &out->send[out->n_sends++];
	send->port = port;
	send->path = *path;
	return send->mad;
}

static void count_sent(struct cm_context *ctx, struct cm_port *port, uint16_t attr_id)
{
	ctx->core->sent[attr_id]++;
	port->tally.sent[cm_tally_kind(attr_id)]++;
}

void cm_emit(struct cm_context *ctx, struct cm_port *port, const struct mad_path *path,
	     const struct cm_msg *msg)
{
	cm_msg_encode(msg, send_mad(ctx, port, path));
	count_sent(ctx, port, msg->hdr.attr_id);
}

void cm_count(struct cm_core *core, struct cm_port *port, enum cm_counter counter, uint16_t attr_id)
{
	core->count[counter]++;
	port->tally.count[counter][cm_tally_kind(attr_id)]++;
}

static void count_duplicate(const struct cm_conn *conn, const struct cm_context *ctx)
{
	cm_count(ctx->core, conn->port, CM_COUNT_DUPLICATE, ctx->msg->hdr.attr_id);
}

static void emit_report(struct cm_conn *conn, struct cm_context *ctx, enum cm_report_kind kind,
			int status)
{
	struct cm_effects *out = ctx->out;

	if (conn->orphan)
		return;
	assert(out->n_reports < CM_REPORTS_MAX);
	out->report[out->n_reports++] =
		(struct cm_report){ .kind = kind, .conn = conn, .status = status };
}

static void begin_msg(struct cm_conn *conn, struct cm_msg *msg, enum cm_attr attr)
{
	cm_msg_init(msg, attr, conn->tid);
}

static void emit_msg(struct cm_conn *conn, struct cm_context *ctx, const struct cm_msg *msg)
{
	cm_emit(ctx, conn->port, &conn->path, msg);
}

/* --- messages that are retransmitted until answered ----------------------- */

static void transmit_copy(struct cm_conn *conn, struct cm_context *ctx)
{
	memcpy(send_mad(ctx, conn->port, &conn->path), conn->mad, MAD_BYTES);
	cm_timer_arm(&ctx->core->timers, &conn->timer, cm_retry_next(&conn->retry, ctx->now));
}

static void send_until_answered(struct cm_conn *conn, struct cm_context *ctx,
				const struct cm_msg *msg, uint64_t give_up_ns)
{
	cm_msg_encode(msg, conn->mad);
	count_sent(ctx, conn->port, msg->hdr.attr_id);
	cm_retry_init(&conn->retry, give_up_ns, ctx->now);
	cm_retry_set_waits(&conn->retry, &ctx->args->waits);
	cm_peer_await(conn, ctx->core);
	transmit_copy(conn, ctx);
}

void act_repeat(struct cm_conn *conn, struct cm_context *ctx)
{
	cm_count(ctx->core, conn->port, CM_COUNT_RETRIED, cm_mad_attr(conn->mad));
	if (conn->n_repeated < UINT16_MAX)
		conn->n_repeated++;
	/* It is lost or slow and no longer loads the port: free its slot. */
	cm_settle(conn, ctx->core);
	cm_peer_repeated(conn, ctx->core, ctx->now);
	transmit_copy(conn, ctx);
}

void act_extend_deadline(struct cm_conn *conn, struct cm_context *ctx)
{
	cm_timer_arm(&ctx->core->timers, &conn->timer,
		     cm_retry_wait(&conn->retry, ctx->msg->mra.service_timeout,
				   conn->packet_life_time, ctx->now));
}

/* --- REQ ----------------------------------------------------------------- */

static void remember_req_sent(struct cm_conn *conn, const struct cm_args *args)
{
	const struct cm_req *req = &args->msg->req;

	conn->active = true;
	conn->port = args->port;
	conn->path = *args->path;
	conn->tid = conn->local_comm_id;
	conn->service_id = req->service_id;
	conn->local_qpn = req->local_qpn;
	conn->starting_psn = req->starting_psn;
	conn->responder_resources = req->responder_resources;
	conn->initiator_depth = req->initiator_depth;
	conn->retry_count = req->retry_count;
	conn->rnr_retry_count = req->rnr_retry_count;
	conn->packet_life_time = args->packet_life_time;
	conn->local_ack_timeout = cm_round_trip(args->packet_life_time);
}

static void await_turn(struct cm_conn *conn, struct cm_pace *pace, const struct cm_msg *msg)
{
	cm_msg_encode(msg, conn->mad);
	cm_pace_append(pace, conn);
}

void act_send_req(struct cm_conn *conn, struct cm_context *ctx)
{
	struct cm_msg *msg = ctx->args->msg;

	assert(msg && ctx->args->port && ctx->args->path);

	remember_req_sent(conn, ctx->args);
	msg->req.local_comm_id = conn->local_comm_id;
	msg->req.local_ca_guid = conn->port->ca_guid;
	msg->hdr.tid = conn->tid;
	cm_retry_init(&conn->retry, ctx->args->give_up_ns, ctx->now);
	cm_retry_set_waits(&conn->retry, &ctx->args->waits);
	await_turn(conn, &conn->port->requests, msg);
}

static void admit_waiting(struct cm_pace *pace, struct cm_port *port, struct cm_context *ctx)
{
	struct cm_conn *conn;

	while (pace->out < ctx->core->out_max && ctx->out->n_sends < CM_SENDS_MAX) {
		conn = cm_peer_take_waiting(pace, port, ctx->core);
		if (!conn)
			return;
		conn->pace = pace;
		pace->out++;
		cm_peer_await(conn, ctx->core);
		count_sent(ctx, conn->port, cm_mad_attr(conn->mad));
		transmit_copy(conn, ctx);
	}
}

void cm_admit(struct cm_port *port, struct cm_context *ctx)
{
	/* Check for emptiness first: every step ends here, and the queues are rarely in use. */
	if (!list_is_empty(&port->disconnects.lanes))
		admit_waiting(&port->disconnects, port, ctx);
	if (!list_is_empty(&port->requests.lanes))
		admit_waiting(&port->requests, port, ctx);
	if (!list_is_empty(&port->to_unresponsive.lanes))
		admit_waiting(&port->to_unresponsive, port, ctx);
}

void cm_settle(struct cm_conn *conn, struct cm_core *core)
{
	cm_timer_disarm(&core->timers, &conn->timer);
	list_remove(&conn->waiting);
	if (conn->pace)
		conn->pace->out--;
	conn->pace = NULL;
}

/* --- the peer's ids ------------------------------------------------------- */

uint32_t cm_rep_qpn(const struct cm_rep *rep)
{
	return rep->local_qpn ? rep->local_qpn : rep->local_eecn;
}

static struct cm_key peer_key(const struct cm_conn *conn, uint32_t id)
{
	return (struct cm_key){ .gid = mad_path_peer(&conn->path),
				.guid = conn->remote_ca_guid,
				.id = id };
}

void cm_index_peer(struct cm_conn *conn, struct cm_core *core)
{
	struct cm_key id = peer_key(conn, conn->remote_comm_id);
	struct cm_key qpn = peer_key(conn, conn->remote_qpn);

	cm_index_insert(&core->by_remote, &conn->by_remote, &id);
	cm_index_insert(&core->by_qpn, &conn->by_qpn, &qpn);
}

void cm_index_lookup(struct cm_conn *conn, struct cm_core *core)
{
	struct cm_key id = peer_key(conn, conn->remote_comm_id);

	cm_index_insert(&core->by_remote, &conn->by_remote, &id);
}

void cm_unindex_peer(struct cm_conn *conn, struct cm_core *core)
{
	cm_index_remove(&core->by_remote, &conn->by_remote);
	cm_index_remove(&core->by_qpn, &conn->by_qpn);
}

void cm_begin_timewait(struct cm_conn *conn, struct cm_context *ctx)
{
	uint8_t wait = conn->local_ack_timeout < TIMEWAIT_MAX ? conn->local_ack_timeout
							      : TIMEWAIT_MAX;
	uint64_t wait_ns = cm_encoded_ms(wait) * CM_NS_PER_MS;

	cm_index_remove(&ctx->core->by_qpn, &conn->by_qpn);
	cm_timer_arm(&ctx->core->timers, &conn->timer, cm_time_after(ctx->now, wait_ns));
}

/* --- REQ and REP received ------------------------------------------------ */

/* REQ depths are from the sender's side: its initiator depth is our responder resources. */
void act_report_request(struct cm_conn *conn, struct cm_context *ctx)
{
	const struct cm_req *req = &ctx->msg->req;

	conn->tid = ctx->msg->hdr.tid;
	conn->remote_comm_id = req->local_comm_id;
	conn->remote_ca_guid = req->local_ca_guid;
	conn->service_id = req->service_id;
	conn->remote_qpn = req->local_qpn;
	conn->remote_starting_psn = req->starting_psn;
	conn->responder_resources = req->initiator_depth;
	conn->initiator_depth = req->responder_resources;
	conn->retry_count = req->retry_count;
	conn->rnr_retry_count = req->rnr_retry_count;
	conn->packet_life_time =
		req->primary.local_ack_timeout ? (uint8_t)(req->primary.local_ack_timeout - 1) : 0;
	conn->local_ack_timeout = cm_round_trip(conn->packet_life_time);
	conn->peer_waits_ms = cm_encoded_ms(req->local_cm_response_timeout) *
			      (req->max_cm_retries + 1u);
	cm_index_peer(conn, ctx->core);
	emit_report(conn, ctx, CM_REPORT_REQUEST, 0);
}

void act_report_response(struct cm_conn *conn, struct cm_context *ctx)
{
	const struct cm_rep *rep = &ctx->msg->rep;

	conn->remote_comm_id = rep->local_comm_id;
	conn->remote_ca_guid = rep->local_ca_guid;
	conn->remote_qpn = cm_rep_qpn(rep);
	conn->remote_starting_psn = rep->starting_psn;
	conn->responder_resources = rep->initiator_depth;
	conn->initiator_depth = rep->responder_resources;
	conn->rnr_retry_count = rep->rnr_retry_count;
	conn->local_ack_timeout = cm_ack_timeout(rep->target_ack_delay, conn->packet_life_time);
	cm_index_peer(conn, ctx->core);
	emit_report(conn, ctx, CM_REPORT_RESPONSE, 0);
}

/* --- REP, RTU, DREQ, DREP, MRA ------------------------------------------- */

static uint64_t rep_give_up_ns(const struct cm_conn *conn, const struct cm_args *args)
{
	uint64_t wait_ms = conn->peer_waits_ms;

	if (args->give_up_ns)
		return args->give_up_ns;
	if (wait_ms >= REP_GIVE_UP_MAX_MS)
		return 0;
	return (wait_ms < REP_GIVE_UP_MIN_MS ? REP_GIVE_UP_MIN_MS : wait_ms) * CM_NS_PER_MS;
}

void act_send_rep(struct cm_conn *conn, struct cm_context *ctx)
{
	struct cm_msg *msg = ctx->args->msg;
	struct cm_rep *rep = &msg->rep;

	assert(msg);

	conn->local_qpn = cm_rep_qpn(rep);
	conn->starting_psn = rep->starting_psn;
	conn->responder_resources = rep->responder_resources;
	conn->initiator_depth = rep->initiator_depth;
	rep->local_comm_id = conn->local_comm_id;
	rep->remote_comm_id = conn->remote_comm_id;
	rep->local_ca_guid = conn->port->ca_guid;
	msg->hdr.tid = conn->tid;
	send_until_answered(conn, ctx, msg, rep_give_up_ns(conn, ctx->args));
}

void act_send_rtu(struct cm_conn *conn, struct cm_context *ctx)
{
	struct cm_msg msg;

	begin_msg(conn, &msg, CM_ATTR_RTU);
	msg.rtu.local_comm_id = conn->local_comm_id;
	msg.rtu.remote_comm_id = conn->remote_comm_id;
	emit_msg(conn, ctx, &msg);
}

void act_send_dreq(struct cm_conn *conn, struct cm_context *ctx)
{
	struct cm_msg msg;

	conn->tid = conn->local_comm_id;
	begin_msg(conn, &msg, CM_ATTR_DREQ);
	msg.dreq.local_comm_id = conn->local_comm_id;
	msg.dreq.remote_comm_id = conn->remote_comm_id;
	msg.dreq.remote_qpn = conn->remote_qpn;
	cm_retry_init(&conn->retry, ctx->args->give_up_ns, ctx->now);
	cm_retry_set_waits(&conn->retry, &ctx->args->waits);
	await_turn(conn, &conn->port->disconnects, &msg);
}

void act_send_drep(struct cm_conn *conn, struct cm_context *ctx)
{
	struct cm_msg msg;

	begin_msg(conn, &msg, CM_ATTR_DREP);
	msg.drep.local_comm_id = conn->local_comm_id;
	msg.drep.remote_comm_id = conn->remote_comm_id;
	emit_msg(conn, ctx, &msg);
}

static void send_mra(struct cm_conn *conn, struct cm_context *ctx, enum cm_msg_answered to)
{
	struct cm_msg msg;

	count_duplicate(conn, ctx);
	begin_msg(conn, &msg, CM_ATTR_MRA);
	msg.mra.local_comm_id = conn->local_comm_id;
	msg.mra.remote_comm_id = conn->remote_comm_id;
	msg.mra.message = to;
	msg.mra.service_timeout = MRA_SERVICE_TIMEOUT;
	emit_msg(conn, ctx, &msg);
}

void act_send_mra_to_req(struct cm_conn *conn, struct cm_context *ctx)
{
	send_mra(conn, ctx, CM_ANSWERED_REQ);
}

void act_send_mra_to_rep(struct cm_conn *conn, struct cm_context *ctx)
{
	send_mra(conn, ctx, CM_ANSWERED_REP);
}

/* --- REJ ----------------------------------------------------------------- */

static void send_rej(struct cm_conn *conn, struct cm_context *ctx, enum cm_msg_answered what,
		     uint32_t local_comm_id)
{
	struct cm_msg msg;

	begin_msg(conn, &msg, CM_ATTR_REJ);
	if (ctx->args->msg)
		msg.rej = ctx->args->msg->rej;
	else
		msg.rej.reason = CM_REJ_CONSUMER;
	msg.rej.local_comm_id = local_comm_id;
	msg.rej.remote_comm_id = conn->remote_comm_id;
	msg.rej.message = what;
	emit_msg(conn, ctx, &msg);
}

void act_reject_req_unnamed(struct cm_conn *conn, struct cm_context *ctx)
{
	send_rej(conn, ctx, CM_ANSWERED_REQ, 0);
}

void act_reject_req(struct cm_conn *conn, struct cm_context *ctx)
{
	send_rej(conn, ctx, CM_ANSWERED_REQ, conn->local_comm_id);
}

void act_reject_rep(struct cm_conn *conn, struct cm_context *ctx)
{
	send_rej(conn, ctx, CM_ANSWERED_REP, conn->local_comm_id);
}

void act_reject_other(struct cm_conn *conn, struct cm_context *ctx)
{
	send_rej(conn, ctx, CM_ANSWERED_OTHER, conn->local_comm_id);
}

/*
 * The peer has to find its connection by our CA GUID: it does not know our comm id together with
 * its own.
 */
void act_reject_timeout(struct cm_conn *conn, struct cm_context *ctx)
{
	struct cm_msg msg;

	if (conn->retry.transmissions == 0)
		return; /* still waiting for a send slot: the peer does not know the REQ */
	begin_msg(conn, &msg, CM_ATTR_REJ);
	msg.rej.local_comm_id = conn->local_comm_id;
	msg.rej.message = CM_ANSWERED_OTHER;
	cm_rej_timeout(&msg.rej, conn->port->ca_guid);
	emit_msg(conn, ctx, &msg);
}

void act_reject_stale_rep(struct cm_conn *conn, struct cm_context *ctx)
{
	struct cm_msg msg;

	begin_msg(conn, &msg, CM_ATTR_REJ);
	msg.rej.local_comm_id = conn->local_comm_id;
	msg.rej.remote_comm_id = ctx->msg->rep.local_comm_id;
	msg.rej.message = CM_ANSWERED_REP;
	msg.rej.reason = CM_REJ_STALE_CONNECTION;
	emit_msg(conn, ctx, &msg);
}

/* --- SIDR: IBTA vol. 1, 12.11 -------------------------------------------- */

/* SIDR has one id: the requester's, which SIDR_REP repeats; the responder has none. */
void act_send_sidr_req(struct cm_conn *conn, struct cm_context *ctx)
{
	struct cm_msg *msg = ctx->args->msg;

	assert(msg && ctx->args->port && ctx->args->path);

	conn->active = true;
	conn->port = ctx->args->port;
	conn->path = *ctx->args->path;
	conn->tid = conn->local_comm_id;
	conn->service_id = msg->sidr_req.service_id;
	msg->sidr_req.request_id = conn->local_comm_id;
	msg->hdr.tid = conn->tid;
	cm_retry_init_lookup(&conn->retry, ctx->args->give_up_ns, ctx->now);
	cm_retry_set_waits(&conn->retry, &ctx->args->waits);
	await_turn(conn, &conn->port->requests, msg);
}

void act_report_lookup(struct cm_conn *conn, struct cm_context *ctx)
{
	const struct cm_sidr_req *req = &ctx->msg->sidr_req;

	conn->tid = ctx->msg->hdr.tid;
	conn->remote_comm_id = req->request_id;
	conn->remote_ca_guid = req->service_id;
	conn->service_id = req->service_id;
	cm_index_lookup(conn, ctx->core);
	emit_report(conn, ctx, CM_REPORT_REQUEST, 0);
}

static void begin_sidr_rep(const struct cm_conn *conn, struct cm_msg *msg)
{
	msg->hdr.tid = conn->tid;
	msg->sidr_rep.request_id = conn->remote_comm_id;
	msg->sidr_rep.service_id = conn->service_id;
}

static void refuse_sidr(struct cm_conn *conn, struct cm_msg *msg)
{
	begin_msg(conn, msg, CM_ATTR_SIDR_REP);
	msg->sidr_rep.status = CM_SIDR_REJECT;
}

/*
 * A SIDR_REP gets no acknowledgement. If it is lost, the peer retransmits the SIDR_REQ, which must
 * not be taken for a new one.
 */
void act_send_sidr_rep(struct cm_conn *conn, struct cm_context *ctx)
{
	struct cm_msg refused, *msg = ctx->args->msg;

	if (!msg) {
		msg = &refused;
		refuse_sidr(conn, msg);
	}
	begin_sidr_rep(conn, msg);
	cm_msg_encode(msg, conn->mad);
	emit_msg(conn, ctx, msg);
}

void act_repeat_sidr_rep(struct cm_conn *conn, struct cm_context *ctx)
{
	count_duplicate(conn, ctx);
	memcpy(send_mad(ctx, conn->port, &conn->path), conn->mad, MAD_BYTES);
}

void act_refuse_lookup(struct cm_conn *conn, struct cm_context *ctx)
{
	struct cm_msg msg;

	refuse_sidr(conn, &msg);
	begin_sidr_rep(conn, &msg);
	emit_msg(conn, ctx, &msg);
}

void act_report_answered(struct cm_conn *conn, struct cm_context *ctx)
{
	emit_report(conn, ctx, CM_REPORT_ANSWERED, 0);
}

/* --- reports ------------------------------------------------------------- */

void act_nothing(struct cm_conn *conn, struct cm_context *ctx)
{
	(void)conn;
	(void)ctx;
}

void act_count_duplicate(struct cm_conn *conn, struct cm_context *ctx)
{
	count_duplicate(conn, ctx);
}

void act_report_established(struct cm_conn *conn, struct cm_context *ctx)
{
	emit_report(conn, ctx, CM_REPORT_ESTABLISHED, 0);
}

void act_report_rejected(struct cm_conn *conn, struct cm_context *ctx)
{
	emit_report(conn, ctx, CM_REPORT_REJECTED, 0);
}

void act_report_stale(struct cm_conn *conn, struct cm_context *ctx)
{
	cm_unindex_peer(conn, ctx->core);
	emit_report(conn, ctx, CM_REPORT_REJECTED, 0);
}

void act_report_unreachable(struct cm_conn *conn, struct cm_context *ctx)
{
	emit_report(conn, ctx, CM_REPORT_UNREACHABLE, -ETIMEDOUT);
}

/* DREP carries the transaction id of the DREQ. */
void act_report_disconnected(struct cm_conn *conn, struct cm_context *ctx)
{
	conn->tid = ctx->msg->hdr.tid;
	emit_report(conn, ctx, CM_REPORT_DISCONNECTED, 0);
}

void act_report_disconnect_unanswered(struct cm_conn *conn, struct cm_context *ctx)
{
	emit_report(conn, ctx, CM_REPORT_DISCONNECTED, -ETIMEDOUT);
}

void act_report_timewait_exit(struct cm_conn *conn, struct cm_context *ctx)
{
	emit_report(conn, ctx, CM_REPORT_TIMEWAIT_EXIT, 0);
}
