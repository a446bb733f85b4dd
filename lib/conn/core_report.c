/* SPDX-License-Identifier: BSD-2-Clause */
/* Translates reports to events: type, parameters, and the new state of the id. See core_report.h.
 */
#include "lib/conn/core_report.h"

#include <errno.h>
#include <string.h>

#include "base/log.h"
#include "cm/action.h"
#include "lib/conn/listen.h"
#include "lib/conn/response.h"
#include "lib/diag/failure.h"

static void set_private_data(struct event *event, const uint8_t *data, uint8_t bytes)
{
	memcpy(event->private_data, data, bytes);
	event->pub.param.conn.private_data = event->private_data;
	event->pub.param.conn.private_data_len = bytes;
}

/* The peer's depths, from our point of view. */
static void set_rep(struct event *event, const struct cm_msg *msg)
{
	const struct cm_rep *rep = &msg->rep;
	struct rdma_conn_param *param = &event->pub.param.conn;

	set_private_data(event, rep->private_data, CM_REP_PRIVATE_BYTES);
	param->responder_resources = rep->initiator_depth;
	param->initiator_depth = rep->responder_resources;
	param->flow_control = rep->flow_control;
	param->rnr_retry_count = rep->rnr_retry_count;
	param->srq = rep->srq;
	param->qp_num = cm_rep_qpn(rep);
	event->ece.vendor_id = rep->vendor_id;
	event->ece.options = msg->hdr.attr_mod;
}

/*
 * The program answers the REP in rdma_get_cm_event(), which may take a while: answer duplicates
 * with MRA.
 */
static void report_response(struct engine *engine, struct outbox *box, struct id *id,
			    const struct cm_msg *msg)
{
	struct event *event = id_event(id, RDMA_CM_EVENT_CONNECT_RESPONSE, 0);

	if (!event)
		return;
	set_rep(event, msg);
	event->taken = response_taken;
	id_post(event);
	engine_step(engine, box, id->conn, CM_CALL_MRA, NULL);
}

static void report_rejected(struct id *id, const struct cm_rej *rej)
{
	struct event *event = id_event(id, RDMA_CM_EVENT_REJECTED, rej->reason);

	log_debug("rejected: reason %u, %s", rej->reason, cm_rej_reason_str(rej->reason));
	if (!event)
		return;
	set_private_data(event, rej->private_data, CM_REJ_PRIVATE_BYTES);
	event->taken = response_rejected;
	id_post(event);
}

static void set_service(struct id *id, struct event *event, const struct cm_sidr_rep *rep)
{
	struct rdma_ud_param *param = &event->pub.param.ud;

	id->qkey = rep->qkey;
	event->pub.event = RDMA_CM_EVENT_ESTABLISHED;
	param->qp_num = rep->qpn;
	param->qkey = rep->qkey;
	path_to_ah(&id->path, &param->ah_attr);
}

/* All datagram queue pairs of an id have one Q_Key: a service with another one is unreachable. */
static void report_answered(struct id *id, const struct cm_sidr_rep *rep)
{
	struct event *event = id_event(id, RDMA_CM_EVENT_UNREACHABLE, rep->status);
	bool suits = rep->qkey && (!id->qkey || id->qkey == rep->qkey);

	if (!event)
		return;
	memcpy(event->private_data, rep->private_data, CM_SIDR_REP_PRIVATE_BYTES);
	event->pub.param.ud.private_data = event->private_data;
	event->pub.param.ud.private_data_len = CM_SIDR_REP_PRIVATE_BYTES;
	if (rep->status != CM_SIDR_OK) {
		event->taken = response_missing;
	} else if (suits) {
		set_service(id, event, rep);
	} else {
		event->pub.event = RDMA_CM_EVENT_ADDR_ERROR;
		event->pub.status = -EINVAL;
	}
	id_post(event);
}

/*
 * After a disconnect, an id only gets TIMEWAIT_EXIT; a request that was not accepted yet gets no
 * event.
 */
static bool is_welcome(const struct id *id, enum cm_report_kind kind)
{
	if (!id->accepted)
		return false;
	return kind == CM_REPORT_TIMEWAIT_EXIT ? id->state == ID_DISCONNECT
					       : id->state == ID_CONNECT;
}

void report_dispatch(struct engine *engine, struct outbox *box, const struct cm_report *report,
		     const struct cm_msg *msg)
{
	struct id *id = report->conn->owner;

	if (report->kind == CM_REPORT_REQUEST) {
		listen_request(engine, box, report->conn, msg);
		return;
	}
	if (!is_welcome(id, report->kind))
		return;
	switch (report->kind) {
	case CM_REPORT_REQUEST:
		break;
	case CM_REPORT_RESPONSE:
		report_response(engine, box, id, msg);
		break;
	case CM_REPORT_ESTABLISHED:
		id_notify(id, RDMA_CM_EVENT_ESTABLISHED, 0);
		break;
	case CM_REPORT_REJECTED:
		report_rejected(id, &msg->rej);
		break;
	case CM_REPORT_UNREACHABLE:
		failure_of_answer(id);
		id_notify_taken(id, RDMA_CM_EVENT_UNREACHABLE, report->status, response_missing);
		break;
	case CM_REPORT_DISCONNECTED:
		id->state = ID_DISCONNECT;
		id_notify(id, RDMA_CM_EVENT_DISCONNECTED, report->status);
		break;
	case CM_REPORT_TIMEWAIT_EXIT:
		id_notify(id, RDMA_CM_EVENT_TIMEWAIT_EXIT, 0);
		break;
	case CM_REPORT_ANSWERED:
		report_answered(id, &msg->sidr_rep);
		break;
	}
}
