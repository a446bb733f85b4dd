/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A connection that outlives its core: what is needed to end it, and how another core takes it
 * over. Called by the library and by cmportd, see core.h.
 */
#include "cm/action.h"
#include "cm/demux.h"

/* Of a REQ that still waits for its turn to be sent nobody has heard. */
static enum cm_state state_for_others(const struct cm_conn *conn)
{
	if (conn->state == CM_REQ_SENT && conn->retry.transmissions == 0)
		return CM_IDLE;
	return conn->state;
}

void cm_conn_snapshot(const struct cm_conn *conn, struct cm_snapshot *ret)
{
	*ret = (struct cm_snapshot){
		state_for_others(conn),
		.active = conn->active,
		.port = conn->port,
		.path = conn->path,
		.local_comm_id = conn->local_comm_id,
		.remote_comm_id = conn->remote_comm_id,
		.remote_ca_guid = conn->remote_ca_guid,
		.local_qpn = conn->local_qpn,
		.remote_qpn = conn->remote_qpn,
		.tid = conn->tid,
		.packet_life_time = conn->packet_life_time,
		.local_ack_timeout = conn->local_ack_timeout,
	};
}

static void remember_snapshot(struct cm_conn *conn, const struct cm_snapshot *snapshot)
{
	conn->active = snapshot->active;
	conn->port = snapshot->port;
	conn->path = snapshot->path;
	conn->remote_comm_id = snapshot->remote_comm_id;
	conn->remote_ca_guid = snapshot->remote_ca_guid;
	conn->local_qpn = snapshot->local_qpn;
	conn->remote_qpn = snapshot->remote_qpn;
	conn->tid = snapshot->tid;
	conn->packet_life_time = snapshot->packet_life_time;
	conn->local_ack_timeout = snapshot->local_ack_timeout;
	conn->service_id = snapshot->remote_ca_guid; /* of a lookup; others need none any more */
	conn->retry.transmissions = 1; /* so that the peer is told of a REQ that is given up */
}

static bool has_to_be_ended(enum cm_state state)
{
	return state != CM_IDLE && state != CM_TIMEWAIT && state != CM_SIDR_REQ_SENT &&
	       state != CM_SIDR_REP_SENT;
}

struct cm_conn *cm_core_adopt(struct cm_core *core, const struct cm_snapshot *snapshot, void *owner)
{
	enum cm_state state = snapshot->state == CM_DREQ_SENT ? CM_ESTABLISHED : snapshot->state;
	struct cm_conn *conn;

	if (!has_to_be_ended(state) || cm_core_reserve(core))
		return NULL;
	if (snapshot->local_comm_id)
		conn = cm_conn_take_as(core, snapshot->local_comm_id);
	else
		conn = cm_conn_take(core);
	if (!conn)
		return NULL;
	conn->owner = owner;
	remember_snapshot(conn, snapshot);
	cm_begin_in(conn, state);
	if (state == CM_SIDR_REQ_RCVD)
		cm_index_lookup(conn, core);
	else if (conn->remote_comm_id)
		cm_index_peer(conn, core);
	return conn;
}
