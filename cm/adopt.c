/* SPDX-License-Identifier: BSD-2-Clause */
/* Export and adoption of connections that outlive their core, see core.h. */
#include "cm/action.h"
#include "cm/demux.h"

struct cm_record cm_conn_record(const struct cm_conn *conn)
{
	struct cm_record record = conn->record;

	/* A REQ that still waits for a send slot is unknown to the peer. */
	if (conn->state == CM_REQ_SENT && conn->retry.transmissions == 0)
		cm_begin_in(&record, CM_IDLE);
	return record;
}

static bool has_to_be_ended(enum cm_state state)
{
	return state != CM_IDLE && state != CM_TIMEWAIT && state != CM_SIDR_REQ_SENT &&
	       state != CM_SIDR_REP_SENT;
}

static void remember_record(struct cm_conn *conn, const struct cm_record *record)
{
	uint32_t local_comm_id = conn->local_comm_id;

	conn->record = *record;
	conn->local_comm_id = local_comm_id;
	conn->service_id = record->remote_ca_guid; /* lookups only; others no longer need it */
	/* So that ending an unanswered REQ sends REJ. */
	conn->retry.transmissions = 1;
}

struct cm_conn *cm_core_adopt(struct cm_core *core, const struct cm_record *record,
			      struct cm_port *port, void *owner)
{
	uint8_t state = record->state == CM_DREQ_SENT ? CM_ESTABLISHED : record->state;
	struct cm_conn *conn;

	if (!has_to_be_ended(state) || cm_core_reserve(core))
		return NULL;
	if (record->local_comm_id)
		conn = cm_conn_take_as(core, record->local_comm_id);
	else
		conn = cm_conn_take(core);
	if (!conn)
		return NULL;
	conn->owner = owner;
	conn->port = port;
	remember_record(conn, record);
	cm_begin_in(&conn->record, state);
	if (state == CM_SIDR_REQ_RCVD)
		cm_index_lookup(conn, core);
	else if (conn->remote_comm_id)
		cm_index_peer(conn, core);
	return conn;
}
