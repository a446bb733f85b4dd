/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Guards: each receiver below finds the connection that a message names, looks at what must hold
 * for it to mean anything, and turns it into one event. What belongs to nobody is answered here
 * without state, or counted and dropped. Called by core.c.
 */
#include "cm/demux.h"

#include <string.h>

#include "cm/action.h"

struct arrival {
	struct cm_port *port;
	const struct mad_path *path;
	struct cm_turn *turn;
	bool alien; /* the ids named a connection with another peer */
};

static void count(const struct arrival *in, enum cm_counter counter)
{
	cm_count(in->turn->core, in->port, counter, in->turn->msg->hdr.attr_id);
}

static struct cm_conn *step(struct arrival *in, struct cm_conn *conn, enum cm_event event)
{
	if (cm_step(conn, event, in->turn))
		count(in, CM_COUNT_UNEXPECTED);
	return conn;
}

/* --- answers without state ----------------------------------------------- */

static void answer(const struct arrival *in, const struct cm_msg *msg)
{
	cm_emit(in->turn, in->port, in->path, msg);
}

static void refuse_req(const struct arrival *in, enum cm_rej_reason reason)
{
	struct cm_msg msg;

	cm_msg_init(&msg, CM_ATTR_REJ, in->turn->msg->hdr.tid);
	msg.rej.remote_comm_id = in->turn->msg->req.local_comm_id;
	msg.rej.message = CM_ANSWERED_REQ;
	msg.rej.reason = (uint16_t)reason;
	answer(in, &msg);
}

/* Whoever disconnects from something we do not know of is told that it is gone. */
static void confirm_dreq(const struct arrival *in)
{
	const struct cm_dreq *dreq = &in->turn->msg->dreq;
	struct cm_msg msg;

	cm_msg_init(&msg, CM_ATTR_DREP, in->turn->msg->hdr.tid);
	msg.drep.local_comm_id = dreq->remote_comm_id;
	msg.drep.remote_comm_id = dreq->local_comm_id;
	answer(in, &msg);
}

static void refuse_sidr(const struct arrival *in)
{
	const struct cm_sidr_req *req = &in->turn->msg->sidr_req;
	struct cm_msg msg;

	cm_msg_init(&msg, CM_ATTR_SIDR_REP, in->turn->msg->hdr.tid);
	msg.sidr_rep.request_id = req->request_id;
	msg.sidr_rep.service_id = req->service_id;
	msg.sidr_rep.status = CM_SIDR_UNSUPPORTED;
	answer(in, &msg);
}

/* --- finding ------------------------------------------------------------- */

static struct cm_conn *find_by_remote(struct arrival *in, uint64_t guid, uint32_t comm_id)
{
	struct cm_key key = { .gid = cm_peer_gid(in->path), .guid = guid, .id = comm_id };
	struct cm_node *node = cm_index_find(&in->turn->core->by_remote, &key);

	return node ? container_of(node, struct cm_conn, by_remote) : NULL;
}

static struct cm_conn *find_by_qpn(struct arrival *in, uint64_t guid, uint32_t qpn)
{
	struct cm_key key = { .gid = cm_peer_gid(in->path), .guid = guid, .id = qpn };
	struct cm_node *node = cm_index_find(&in->turn->core->by_qpn, &key);

	return node ? container_of(node, struct cm_conn, by_qpn) : NULL;
}

/* The connection with this local comm id, provided that its peer is who sent the message: comm
 * ids travel in the clear and can be guessed. */
static struct cm_conn *find_by_local(struct arrival *in, uint32_t local_comm_id)
{
	struct cm_key key = { .id = local_comm_id };
	struct cm_node *node = cm_index_find(&in->turn->core->by_local, &key);
	struct cm_conn *conn = node ? container_of(node, struct cm_conn, by_local) : NULL;
	struct mad_gid sender = cm_peer_gid(in->path), peer;

	if (!conn || !conn->port)
		return NULL;
	peer = cm_peer_gid(&conn->path);
	in->alien = memcmp(&sender, &peer, sizeof(peer)) != 0;
	return in->alien ? NULL : conn;
}

static struct cm_conn *known(struct arrival *in, struct cm_conn *conn)
{
	in->turn->out->is_known = true;
	return conn;
}

static struct cm_conn *find_pair(struct arrival *in, uint32_t local_comm_id,
				 uint32_t remote_comm_id)
{
	struct cm_conn *conn = find_by_local(in, local_comm_id);

	return conn && conn->remote_comm_id == remote_comm_id ? known(in, conn) : NULL;
}

/* As long as no REP has come we do not know the peer's comm id. */
static struct cm_conn *find_unanswered(struct arrival *in, uint32_t local_comm_id)
{
	return find_pair(in, local_comm_id, 0);
}

static struct cm_conn *unknown(struct arrival *in)
{
	count(in, in->alien ? CM_COUNT_ALIEN : CM_COUNT_UNKNOWN);
	return NULL;
}

/* --- one receiver a message ---------------------------------------------- */

static bool is_served(const struct arrival *in, uint64_t service_id)
{
	struct cm_key key = { .guid = service_id };

	return cm_index_find(&in->turn->core->services, &key);
}

static struct cm_conn *take_request(struct arrival *in, enum cm_event event)
{
	struct cm_conn *conn = cm_conn_take(in->turn->core);

	if (!conn) {
		count(in, CM_COUNT_NO_MEMORY);
		return NULL;
	}
	conn->port = in->port;
	conn->path = *in->path;
	return step(in, conn, event);
}

/* A living connection with the queue pair that a REQ or REP names cannot be: the peer has
 * forgotten it. */
static struct cm_conn *receive_req(struct arrival *in)
{
	const struct cm_req *req = &in->turn->msg->req;
	struct cm_conn *conn;

	conn = find_by_remote(in, req->local_ca_guid, req->local_comm_id);
	if (conn)
		return step(in, conn, CM_RX_REQ_DUP);
	conn = find_by_qpn(in, req->local_ca_guid, req->local_qpn);
	if (conn) {
		refuse_req(in, CM_REJ_STALE_CONNECTION);
		cm_step(conn, CM_PEER_RESTARTED, in->turn);
		return conn;
	}
	if (!is_served(in, req->service_id)) {
		refuse_req(in, CM_REJ_INVALID_SERVICE_ID);
		return NULL;
	}
	return take_request(in, CM_RX_REQ);
}

static struct cm_conn *receive_rep(struct arrival *in)
{
	const struct cm_rep *rep = &in->turn->msg->rep;
	struct cm_conn *conn = find_by_local(in, rep->remote_comm_id);
	struct cm_conn *old;

	if (!conn)
		return unknown(in);
	if (conn->remote_comm_id && conn->remote_comm_id != rep->local_comm_id)
		return unknown(in);
	known(in, conn);
	if (conn->remote_comm_id)
		return step(in, conn, CM_RX_REP_DUP);
	if (find_by_remote(in, rep->local_ca_guid, rep->local_comm_id))
		return unknown(in);
	old = find_by_qpn(in, rep->local_ca_guid, cm_rep_qpn(rep));
	if (old) {
		if (cm_step(conn, CM_RX_REP_STALE, in->turn)) {
			count(in, CM_COUNT_UNEXPECTED);
			return conn;
		}
		cm_step(old, CM_PEER_RESTARTED, in->turn);
		return old;
	}
	return step(in, conn, CM_RX_REP);
}

static struct cm_conn *receive_rtu(struct arrival *in)
{
	const struct cm_rtu *rtu = &in->turn->msg->rtu;
	struct cm_conn *conn = find_pair(in, rtu->remote_comm_id, rtu->local_comm_id);

	return conn ? step(in, conn, CM_RX_RTU) : unknown(in);
}

static struct cm_conn *receive_mra(struct arrival *in)
{
	const struct cm_mra *mra = &in->turn->msg->mra;
	bool to_req = mra->message == CM_ANSWERED_REQ;
	struct cm_conn *conn;

	if (to_req)
		conn = find_unanswered(in, mra->remote_comm_id);
	else
		conn = find_pair(in, mra->remote_comm_id, mra->local_comm_id);
	if (!conn)
		return unknown(in);
	if (!to_req && mra->message != CM_ANSWERED_REP) {
		count(in, CM_COUNT_UNEXPECTED); /* to a LAP, which we never send */
		return NULL;
	}
	return step(in, conn, to_req ? CM_RX_MRA_REQ : CM_RX_MRA_REP);
}

uint64_t cm_rej_guid(const struct cm_rej *rej)
{
	uint64_t guid = 0;
	unsigned int i;

	for (i = 0; i < sizeof(guid); i++)
		guid = guid << 8 | rej->ari[i];
	return guid;
}

/* Who gives up on us with reason 4 has no id of ours to name, but the GUID of its CA. */
static struct cm_conn *find_abandoned(struct arrival *in, const struct cm_rej *rej)
{
	return find_by_remote(in, cm_rej_guid(rej), rej->local_comm_id);
}

static struct cm_conn *receive_rej(struct arrival *in)
{
	const struct cm_rej *rej = &in->turn->msg->rej;
	struct cm_conn *conn;

	if (rej->reason == CM_REJ_TIMEOUT)
		conn = find_abandoned(in, rej);
	else if (rej->message == CM_ANSWERED_REQ)
		conn = find_unanswered(in, rej->remote_comm_id);
	else
		conn = find_pair(in, rej->remote_comm_id, rej->local_comm_id);
	if (!conn)
		return unknown(in);
	return step(in, conn, rej->reason == CM_REJ_STALE_CONNECTION ? CM_RX_REJ_STALE : CM_RX_REJ);
}

/* A DREQ names the queue pair of its receiver; one that does not is not for this connection. */
static struct cm_conn *receive_dreq(struct arrival *in)
{
	const struct cm_dreq *dreq = &in->turn->msg->dreq;
	struct cm_conn *conn = find_pair(in, dreq->remote_comm_id, dreq->local_comm_id);

	if (conn)
		return dreq->remote_qpn == conn->local_qpn ? step(in, conn, CM_RX_DREQ)
							   : unknown(in);
	if (!in->alien)
		confirm_dreq(in);
	return unknown(in);
}

static struct cm_conn *receive_drep(struct arrival *in)
{
	const struct cm_drep *drep = &in->turn->msg->drep;
	struct cm_conn *conn = find_pair(in, drep->remote_comm_id, drep->local_comm_id);

	return conn ? step(in, conn, CM_RX_DREP) : unknown(in);
}

static struct cm_conn *receive_sidr_req(struct arrival *in)
{
	const struct cm_sidr_req *req = &in->turn->msg->sidr_req;
	struct cm_conn *conn = find_by_remote(in, req->service_id, req->request_id);

	if (conn)
		return step(in, conn, CM_RX_SIDR_REQ_DUP);
	if (!is_served(in, req->service_id)) {
		refuse_sidr(in);
		return NULL;
	}
	return take_request(in, CM_RX_SIDR_REQ);
}

/* The request id is our comm id. A connection with that id is in no state that has this event. */
static struct cm_conn *receive_sidr_rep(struct arrival *in)
{
	struct cm_conn *conn = find_by_local(in, in->turn->msg->sidr_rep.request_id);

	return conn ? step(in, known(in, conn), CM_RX_SIDR_REP) : unknown(in);
}

static struct cm_conn *receive_unsupported(struct arrival *in)
{
	count(in, CM_COUNT_UNSUPPORTED);
	return NULL;
}

static struct cm_conn *(*const receivers[])(struct arrival *) = {
	[CM_ATTR_REQ] = receive_req,	       [CM_ATTR_MRA] = receive_mra,
	[CM_ATTR_REJ] = receive_rej,	       [CM_ATTR_REP] = receive_rep,
	[CM_ATTR_RTU] = receive_rtu,	       [CM_ATTR_DREQ] = receive_dreq,
	[CM_ATTR_DREP] = receive_drep,	       [CM_ATTR_SIDR_REQ] = receive_sidr_req,
	[CM_ATTR_SIDR_REP] = receive_sidr_rep, [CM_ATTR_LAP] = receive_unsupported,
	[CM_ATTR_APR] = receive_unsupported,
};

struct cm_conn *cm_demux(struct cm_port *port, const struct mad_path *path, struct cm_turn *turn)
{
	struct arrival in = { .port = port, .path = path, .turn = turn };

	turn->core->received[turn->msg->hdr.attr_id]++;
	port->tally.received[cm_tally_kind(turn->msg->hdr.attr_id)]++;
	return receivers[turn->msg->hdr.attr_id](&in);
}
