/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Connections: rdma_connect(), rdma_accept(), rdma_reject(), rdma_reject_ece(), rdma_establish(),
 * rdma_notify(), rdma_disconnect(). Each builds a message from its arguments (message.h) and steps
 * the core.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/api.h"
#include "lib/conn/message.h"
#include "lib/engine/engine.h"
#include "lib/engine/cmportd.h"
#include "lib/engine/session.h"
#include "lib/sync/sync.h"
#include "lib/verbs/qp.h"

/* --- connect ------------------------------------------------------------- */

/* @verb: CM_CALL_REQ or CM_CALL_SIDR_REQ */
static int send_request(struct id *id, enum cm_event verb, const struct conn_params *params,
			struct cm_msg *msg)
{
	struct mad_path path;
	struct cm_args args = { .path = &path,
				.msg = msg,
				.packet_life_time = id->path.packet_life_time,
				.give_up_ns = id->option.give_up_ns,
				.waits = id->option.waits };
	struct engine *engine;
	struct outbox box;
	int err = id_follow_address(id);

	if (err)
		return err == -ENODATA ? -EINVAL : err;
	err = -EINVAL;
	path_to_mad(&id->path, &path);
	outbox_init(&box);
	engine = engine_lock();
	if (id->state != ID_ROUTE_RESOLVED)
		goto out;
	err = -ENOMEM;
	id->conn = cm_core_conn_new(&engine->core, id);
	if (!id->conn)
		goto out;
	id->accepted = true;
	id->state = ID_CONNECT;
	args.port = &id->path.port->cm;
	err = engine_step(engine, &box, id->conn, verb, &args);
	id->conn->retry_count = params->retry_count; /* an XRC REQ does not carry it */
	if (!err) {
		free(id->prefix); /* sent only once */
		id->prefix = NULL;
		id->prefix_bytes = 0;
	}
out:
	engine_unlock();
	outbox_flush(&box);
	return err;
}

static int connect_id(struct id *id, const struct rdma_conn_param *param)
{
	struct conn_params params;
	struct cm_msg msg;
	int err;

	if (!id->pub.qp && !param && id->pub.ps == RDMA_PS_TCP)
		return -EINVAL;
	if (!id->attached || !engine_id_is(id, ID_ROUTE_RESOLVED))
		return -EINVAL;
	err = conn_params_init(id, param, RDMA_MAX_RESP_RES, RDMA_MAX_INIT_DEPTH, &params);
	if (err)
		return err;
	if (id_is_datagram(id))
		err = message_sidr_req(id, &params, &msg);
	else
		err = message_req(id, &params, &msg);
	return err ? err
		   : send_request(id, id_is_datagram(id) ? CM_CALL_SIDR_REQ : CM_CALL_REQ, &params,
				  &msg);
}

int rdma_connect(struct rdma_cm_id *id, struct rdma_conn_param *conn_param)
{
	return sync_return(id, connect_id(id_of(id), conn_param));
}

/* --- accept -------------------------------------------------------------- */

/* From then on the id may get events. */
static bool is_acceptance(enum cm_event verb, const struct cm_msg *msg)
{
	return verb == CM_CALL_REP ||
	       (verb == CM_CALL_SIDR_REP && msg && msg->sidr_rep.status == CM_SIDR_OK);
}

static int step_conn(struct id *id, enum cm_event verb, struct cm_msg *msg)
{
	struct cm_args args = { .msg = msg,
				.give_up_ns = id->option.give_up_ns,
				.waits = id->option.waits };
	struct engine *engine;
	struct outbox box;
	int err = -EINVAL;

	outbox_init(&box);
	engine = engine_lock();
	if (id->conn)
		err = engine_step(engine, &box, id->conn, verb, &args);
	if (!err && is_acceptance(verb, msg))
		id->accepted = true;
	engine_unlock();
	outbox_flush(&box);
	return err;
}

/* The queue pair is moved with the depths that the REP carries. */
static int set_depths(struct id *id, uint8_t responder_resources, uint8_t initiator_depth)
{
	int err = -EINVAL;

	engine_lock();
	if (id->conn && id->state == ID_CONNECT) {
		id->conn->responder_resources = responder_resources;
		id->conn->initiator_depth = initiator_depth;
		err = 0;
	}
	engine_unlock();
	return err;
}

/* Rejects the request on failure, as the peer waits for an answer. */
static int send_rep(struct id *id, const struct conn_params *params)
{
	struct cm_msg msg;
	int err = message_rep(id, params, &msg);

	if (!err)
		err = step_conn(id, CM_CALL_REP, &msg);
	if (err) {
		qp_to_error(id);
		step_conn(id, CM_CALL_REJ, NULL);
	}
	return err;
}

/* SIDR_REP is not acknowledged, so no event follows. */
static int send_sidr_rep(struct id *id, const struct conn_params *params)
{
	struct cm_msg msg;
	int err = message_sidr_rep(id, params, &msg);

	if (!err)
		err = step_conn(id, CM_CALL_SIDR_REP, &msg);
	if (err) {
		qp_to_error(id);
		step_conn(id, CM_CALL_SIDR_REP, NULL);
	}
	return err;
}

static int accept_id(struct id *id, const struct rdma_conn_param *param)
{
	uint8_t responder, initiator;
	struct conn_params params;
	int err;

	if (!id->attached || (!id->pub.qp && !param && !id_is_datagram(id)))
		return -EINVAL;
	engine_lock(); /* without a connection a later step fails */
	responder = id->conn ? id->conn->responder_resources : RDMA_MAX_RESP_RES;
	initiator = id->conn ? id->conn->initiator_depth : RDMA_MAX_INIT_DEPTH;
	engine_unlock();
	err = conn_params_init(id, param, responder, initiator, &params);
	if (err)
		return err;
	if (id_is_datagram(id))
		return send_sidr_rep(id, &params);
	err = set_depths(id, params.responder_resources, params.initiator_depth);
	if (!err && id->pub.qp)
		err = qp_to_rts(id);
	if (!err)
		err = send_rep(id, &params);
	if (err)
		set_depths(id, responder, initiator);
	return err;
}

/* No event follows that would replace the request's. */
static int accept_datagram(struct id *id, const struct rdma_conn_param *param)
{
	int err = accept_id(id, param);

	if (!err && id_is_sync(id))
		sync_drop_event(id);
	return err;
}

int rdma_accept(struct rdma_cm_id *id, struct rdma_conn_param *conn_param)
{
	if (!id_check(id) && id_is_datagram(id_of(id)))
		return api_return(accept_datagram(id_of(id), conn_param));
	return sync_return(id, accept_id(id_of(id), conn_param));
}

/* --- reject, establish, notify ------------------------------------------- */

static int reject_id(struct id *id, enum cm_rej_reason reason, const void *data, uint8_t bytes)
{
	bool is_lookup = id_is_datagram(id);
	struct cm_msg msg;
	int err = is_lookup ? message_sidr_reject(data, bytes, &msg)
			    : message_rej(reason, data, bytes, &msg);

	return err ? err : step_conn(id, is_lookup ? CM_CALL_SIDR_REP : CM_CALL_REJ, &msg);
}

int rdma_reject(struct rdma_cm_id *id, const void *private_data, uint8_t private_data_len)
{
	return api_return(
		id_check(id)
			?: reject_id(id_of(id), CM_REJ_CONSUMER, private_data, private_data_len));
}

int rdma_reject_ece(struct rdma_cm_id *id, const void *private_data, uint8_t private_data_len)
{
	return api_return(id_check(id)
				  ?: reject_id(id_of(id), CM_REJ_VENDOR_OPTION, private_data,
					       private_data_len));
}

/* A lookup is answered as by rdma_accept() without parameters. */
static int establish_id(struct id *id)
{
	static const struct conn_params no_params;
	int err;

	if (id->pub.qp)
		return -EINVAL;
	if (id_is_datagram(id))
		return send_sidr_rep(id, &no_params);
	err = step_conn(id, CM_CALL_RTU, NULL);
	if (err)
		step_conn(id, CM_CALL_REJ, NULL);
	return err;
}

int rdma_establish(struct rdma_cm_id *id)
{
	return api_return(id_check(id) ?: establish_id(id_of(id)));
}

/* The peer's data counts as its RTU; cmportd sees neither, so report it. */
static int establish_by_data(struct id *id)
{
	struct cm_record tracked;
	bool is_known;
	int err;

	engine_lock();
	is_known = id->conn && cmportd_record_of(id->conn, &tracked);
	engine_unlock();
	err = step_conn(id, CM_CALL_ESTABLISH, NULL);
	if (!err && is_known) {
		tracked.state = CM_ESTABLISHED;
		portd_track(session_client(), &tracked);
	}
	return err;
}

static int notify_id(struct id *id, enum ibv_event_type event)
{
	bool begun, established;

	engine_lock();
	begun = id->conn;
	established = begun && id->conn->state == CM_ESTABLISHED;
	engine_unlock();
	if (!id->attached || !begun)
		return -EINVAL;
	if (event == IBV_EVENT_PATH_MIG)
		return established ? 0 : -EINVAL;
	if (event != IBV_EVENT_COMM_EST)
		return -EINVAL;
	return established ? -EISCONN : establish_by_data(id);
}

int rdma_notify(struct rdma_cm_id *id, enum ibv_event_type event)
{
	return api_return(id_check(id) ?: notify_id(id_of(id), event));
}

/* --- disconnect ---------------------------------------------------------- */

/*
 * The state determines whether we send DREQ or DREP; a connection that has already ended needs
 * neither, which is no error. Without a connection the queue pair moves to ERR nevertheless, as in
 * stock: programs wait until their receives are flushed.
 */
static int disconnect_id(struct id *id)
{
	bool begun;
	int err;

	if (!id->attached)
		return -EINVAL;
	err = qp_to_error(id);
	if (err)
		return err;
	engine_lock();
	begun = id->conn || id->state == ID_LISTEN;
	engine_unlock();
	if (!begun)
		return -EINVAL;
	id_follow_address(id);
	if (step_conn(id, CM_CALL_DREQ, NULL))
		step_conn(id, CM_CALL_DREP, NULL);
	return 0;
}

int rdma_disconnect(struct rdma_cm_id *id)
{
	return sync_return(id, disconnect_id(id_of(id)));
}
