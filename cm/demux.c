/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Dispatches a message as one event of one connection, as the guards determine. Messages that match
 * no connection are answered statelessly, or counted and dropped.
 */
#include "cm/demux.h"

#include "cm/action.h"
#include "cm/guard.h"

/* A message, and where it arrived. */
struct input {
	struct cm_port *port;
	const struct mad_path *path;
	struct cm_context *ctx;
};

static void count_msg(const struct input *in, enum cm_counter counter)
{
	cm_count(in->ctx->core, in->port, counter, in->ctx->msg->hdr.attr_id);
}

/* --- stateless answers ---------------------------------------------------- */

static void emit_answer(const struct input *in, const struct cm_msg *msg)
{
	cm_emit(in->ctx, in->port, in->path, msg);
}

static void refuse_req(const struct input *in, enum cm_rej_reason reason)
{
	struct cm_msg msg;

	cm_msg_init(&msg, CM_ATTR_REJ, in->ctx->msg->hdr.tid);
	msg.rej.remote_comm_id = in->ctx->msg->req.local_comm_id;
	msg.rej.message = CM_ANSWERED_REQ;
	msg.rej.reason = (uint16_t)reason;
	emit_answer(in, &msg);
}

/* Answer a DREQ for an unknown connection, so that the peer can finish. */
static void confirm_dreq(const struct input *in)
{
	const struct cm_dreq *dreq = &in->ctx->msg->dreq;
	struct cm_msg msg;

	cm_msg_init(&msg, CM_ATTR_DREP, in->ctx->msg->hdr.tid);
	msg.drep.local_comm_id = dreq->remote_comm_id;
	msg.drep.remote_comm_id = dreq->local_comm_id;
	emit_answer(in, &msg);
}

static void refuse_sidr(const struct input *in)
{
	const struct cm_sidr_req *req = &in->ctx->msg->sidr_req;
	struct cm_msg msg;

	cm_msg_init(&msg, CM_ATTR_SIDR_REP, in->ctx->msg->hdr.tid);
	msg.sidr_rep.request_id = req->request_id;
	msg.sidr_rep.service_id = req->service_id;
	msg.sidr_rep.status = CM_SIDR_UNSUPPORTED;
	emit_answer(in, &msg);
}

/* --- lookups -------------------------------------------------------------- */

static struct cm_conn *conn_of(struct cm_record *record)
{
	return container_of(record, struct cm_conn, record);
}

static struct cm_record *find_by_local(const struct cm_arrival *in, uint32_t local_comm_id)
{
	const struct cm_core *core = in->arg;
	struct cm_key key = { .id = local_comm_id };
	struct cm_node *node = cm_index_find(&core->by_local, &key);
	struct cm_conn *conn = node ? container_of(node, struct cm_conn, by_local) : NULL;

	return conn && conn->port ? &conn->record : NULL;
}

static struct cm_record *find_by_remote(const struct cm_arrival *in, uint64_t guid, uint32_t id)
{
	const struct cm_core *core = in->arg;
	struct cm_key key = { .gid = in->peer, .guid = guid, .id = id };
	struct cm_node *node = cm_index_find(&core->by_remote, &key);

	return node ? &container_of(node, struct cm_conn, by_remote)->record : NULL;
}

static struct cm_record *find_by_qpn(const struct cm_arrival *in, uint64_t guid, uint32_t qpn)
{
	const struct cm_core *core = in->arg;
	struct cm_key key = { .gid = in->peer, .guid = guid, .id = qpn };
	struct cm_node *node = cm_index_find(&core->by_qpn, &key);

	return node ? &container_of(node, struct cm_conn, by_qpn)->record : NULL;
}

static const struct cm_lookups lookups = { find_by_local, find_by_remote, find_by_qpn };

/* --- dispatch ------------------------------------------------------------- */

static void drop_msg(const struct input *in, const struct cm_found *found)
{
	if (in->ctx->msg->hdr.attr_id == CM_ATTR_DREQ && !found->record &&
	    found->why != CM_COUNT_ALIEN)
		confirm_dreq(in);
	count_msg(in, found->why);
}

static struct cm_conn *new_conn(const struct input *in)
{
	struct cm_conn *conn = cm_conn_take(in->ctx->core);

	if (!conn) {
		count_msg(in, CM_COUNT_NO_MEMORY);
		return NULL;
	}
	conn->port = in->port;
	conn->path = *in->path;
	return conn;
}

/* Return: the connection that a request begins, or NULL. */
static struct cm_conn *take_request(const struct input *in, const struct cm_found *found)
{
	const struct cm_msg *msg = in->ctx->msg;
	bool is_lookup = msg->hdr.attr_id == CM_ATTR_SIDR_REQ;
	uint64_t service_id = is_lookup ? msg->sidr_req.service_id : msg->req.service_id;

	if (found->stale)
		refuse_req(in, CM_REJ_STALE_CONNECTION);
	else if (cm_core_service(in->ctx->core, service_id))
		return new_conn(in);
	else if (is_lookup)
		refuse_sidr(in);
	else
		refuse_req(in, CM_REJ_INVALID_SERVICE_ID);
	return NULL;
}

struct cm_conn *cm_demux(struct cm_port *port, const struct mad_path *path, struct cm_context *ctx)
{
	struct input in = { .port = port, .path = path, .ctx = ctx };
	struct cm_arrival arrival = { &lookups, ctx->core, ctx->msg, mad_path_peer(path) };
	struct cm_found found;
	enum cm_event event = cm_guard(&arrival, &found);
	struct cm_conn *conn;

	ctx->out->is_known = found.is_known;

	ctx->core->received[ctx->msg->hdr.attr_id]++;
	port->tally.received[cm_tally_kind(ctx->msg->hdr.attr_id)]++;
	if (event == CM_NO_EVENT) {
		drop_msg(&in, &found);
		return NULL;
	}
	conn = found.record ? conn_of(found.record) : take_request(&in, &found);
	if (conn && cm_step(conn, event, ctx)) {
		count_msg(&in, CM_COUNT_UNEXPECTED);
		return conn;
	}
	if (!found.stale)
		return conn;
	conn = conn_of(found.stale);
	cm_step(conn, CM_PEER_RESTARTED, ctx);
	return conn;
}
