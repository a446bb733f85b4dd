/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Connections: rdma_connect(), rdma_accept(), rdma_reject(), rdma_reject_ece(), rdma_establish(),
 * rdma_notify(), rdma_disconnect(). Each turns arguments into a message and steps the core.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/api.h"
#include "lib/ece.h"
#include "lib/engine.h"
#include "lib/host.h"
#include "lib/qp.h"
#include "lib/roce.h"
#include "lib/sync.h"
#include "mad/cma_hdr.h"

#define CM_RESPONSE_TIMEOUT 20 /* 4.096 us * 2^20, 4.3 s: what the kernel promises and asks for */
#define MAX_CM_RETRIES	    15
#define RETRY_COUNT_MAX	    7
#define PERMISSIVE_LID	    0xffff
#define QPN_MASK	    0xffffff
#define PKEY_BASE_MASK	    0x7fff

/* --- parameters ---------------------------------------------------------- */

/* What is sent, after defaults and limits. */
struct offer {
	const void *private_data;
	uint8_t private_data_len;
	uint8_t responder_resources;
	uint8_t initiator_depth;
	uint8_t flow_control;
	uint8_t retry_count;
	uint8_t rnr_retry_count;
	uint8_t srq;
	uint32_t qpn;
	uint8_t joined[UINT8_MAX]; /* private_data, where not all of it is the program's */
};

static uint8_t smaller(uint8_t a, uint8_t b)
{
	return a < b ? a : b;
}

static uint8_t device_depth(int limit)
{
	return (uint8_t)limit;
}

/* What came with the address (rdma_addrinfo.ai_connect) goes first. */
static int put_prefix(const struct id *id, struct offer *offer)
{
	size_t room = sizeof(offer->joined) - offer->private_data_len;

	if (!id->prefix_bytes)
		return 0;
	if (id->prefix_bytes > room)
		return -EINVAL;
	memcpy(offer->joined, id->prefix, id->prefix_bytes);
	if (offer->private_data_len)
		memcpy(offer->joined + id->prefix_bytes, offer->private_data,
		       offer->private_data_len);
	offer->private_data = offer->joined;
	offer->private_data_len += (uint8_t)id->prefix_bytes;
	return 0;
}

/* How many RDMA READs: 0xff is as many as the device can do, and with @match_max no more than the
 * peer asked for. */
static int choose_depth(const struct id *id, uint8_t asked, uint8_t device_max, uint8_t match_max,
			uint8_t *ret)
{
	if (asked == RDMA_MAX_RESP_RES) {
		*ret = smaller(device_max, match_max);
		return 0;
	}
	if (asked > device_max && id->pub.ps == RDMA_PS_TCP)
		return -EINVAL;
	*ret = asked;
	return 0;
}

/*
 * @param:  the program's, or NULL for the best that both sides can do
 * @peer_responder, @peer_initiator: limits that the peer's request sets, 0xff for none
 */
static int make_offer(struct id *id, const struct rdma_conn_param *param, uint8_t peer_responder,
		      uint8_t peer_initiator, struct offer *offer)
{
	const struct ibv_device_attr *limits = &id->attached->attr;
	struct rdma_conn_param best = {
		.responder_resources = RDMA_MAX_RESP_RES,
		.initiator_depth = RDMA_MAX_INIT_DEPTH,
		.retry_count = RETRY_COUNT_MAX,
		.rnr_retry_count = RETRY_COUNT_MAX,
	};
	int err;

	if (!param)
		param = &best;
	*offer = (struct offer){
		.private_data = param->private_data,
		.private_data_len = param->private_data ? param->private_data_len : 0,
		.flow_control = param->flow_control,
		.retry_count = smaller(param->retry_count, RETRY_COUNT_MAX),
		.rnr_retry_count = smaller(param->rnr_retry_count, RETRY_COUNT_MAX),
		.srq = id->pub.qp ? id->pub.qp->srq != NULL : param->srq,
		.qpn = (id->pub.qp ? id->pub.qp->qp_num : param->qp_num) & QPN_MASK,
	};
	err = choose_depth(id, param->responder_resources, device_depth(limits->max_qp_rd_atom),
			   peer_responder, &offer->responder_resources);
	if (!err)
		err = choose_depth(id, param->initiator_depth,
				   device_depth(limits->max_qp_init_rd_atom), peer_initiator,
				   &offer->initiator_depth);
	return err ? err : put_prefix(id, offer);
}

static int put_private_data(uint8_t *to, size_t room, const void *data, size_t bytes)
{
	if (bytes > room)
		return -EINVAL;
	if (bytes)
		memcpy(to, data, bytes);
	return 0;
}

/* --- connect ------------------------------------------------------------- */

static void put_ip(const union addr *addr, uint8_t to[16])
{
	if (addr->sa.sa_family == AF_INET)
		memcpy(to + 12, &addr->in4.sin_addr, 4);
	else
		memcpy(to, &addr->in6.sin6_addr, 16);
}

static void put_cma_hdr(const struct id *id, uint8_t *to)
{
	struct cma_hdr hdr = {
		.ip_version = id->claim.local.sa.sa_family == AF_INET ? 4 : 6,
		.src_port = addr_port(&id->claim.local),
	};

	put_ip(&id->claim.local, hdr.src_addr);
	put_ip(&id->claim.peer, hdr.dst_addr);
	wire_encode(&cma_hdr_layout, &hdr, to);
}

/* A route that leaves the subnet has no LIDs, and RoCE over IP is such a route unless the program
 * says otherwise. */
static void put_primary_path(const struct id *id, const struct ibv_sa_path_rec *rec,
			     struct cm_req_path *path)
{
	bool local = rec->hop_limit <= 1;

	path->local_lid = local ? 0 : PERMISSIVE_LID;
	path->remote_lid = path->local_lid;
	memcpy(&path->local_gid, &rec->sgid, sizeof(path->local_gid));
	memcpy(&path->remote_gid, &rec->dgid, sizeof(path->remote_gid));
	path->flow_label = id->path.flow_label;
	path->traffic_class = rec->traffic_class;
	path->packet_rate = rec->rate;
	path->hop_limit = rec->hop_limit;
	path->sl = id->path.sl;
	path->subnet_local = local;
	path->local_ack_timeout =
		cm_ack_timeout(id->attached->attr.local_ca_ack_delay, id->path.packet_life_time);
}

/* The one partition that a RoCE port is in, as a full or as a limited member. */
static bool has_pkey(const struct id *id)
{
	return (id->path.pkey & PKEY_BASE_MASK) == PKEY_BASE_MASK;
}

/* IBTA vol. 1, 12.7.1. What an XRC initiator does not serve, and its own limits, stay 0. */
static void put_transport(const struct id *id, const struct offer *offer, struct cm_req *req)
{
	enum ibv_qp_type type = id_transport(id);

	req->initiator_depth = offer->initiator_depth;
	req->flow_control = offer->flow_control != 0;
	if (type == IBV_QPT_XRC_SEND) {
		req->transport_service_type = CM_TRANSPORT_EXTENDED;
		req->extended_transport_type = CM_EXTENDED_XRC;
		return;
	}
	req->transport_service_type = type == IBV_QPT_UC ? CM_TRANSPORT_UC : CM_TRANSPORT_RC;
	req->responder_resources = offer->responder_resources;
	req->retry_count = offer->retry_count;
	req->rnr_retry_count = offer->rnr_retry_count;
	req->srq = offer->srq != 0;
}

static int make_req(const struct id *id, const struct offer *offer, struct cm_msg *msg)
{
	struct cm_req *req = &msg->req;
	struct ibv_sa_path_rec rec;

	if (!has_pkey(id))
		return -ENOENT;
	roce_path_record(id, &rec);
	cm_msg_init(msg, CM_ATTR_REQ, 0);
	req->service_id = cma_service_id(id->claim.ps, addr_port(&id->claim.peer));
	req->local_qpn = offer->qpn;
	req->remote_cm_response_timeout = CM_RESPONSE_TIMEOUT;
	req->starting_psn = id->starting_psn;
	req->local_cm_response_timeout = CM_RESPONSE_TIMEOUT;
	req->pkey = id->path.pkey;
	req->path_mtu = id->path.mtu;
	req->max_cm_retries = MAX_CM_RETRIES;
	put_transport(id, offer, req);
	ece_put_req(id, msg);
	put_primary_path(id, &rec, &req->primary);
	put_cma_hdr(id, req->private_data);
	return put_private_data(req->private_data + CMA_HDR_BYTES,
				CM_REQ_PRIVATE_BYTES - CMA_HDR_BYTES, offer->private_data,
				offer->private_data_len);
}

static int make_sidr_req(const struct id *id, const struct offer *offer, struct cm_msg *msg)
{
	struct cm_sidr_req *req = &msg->sidr_req;

	cm_msg_init(msg, CM_ATTR_SIDR_REQ, 0);
	req->service_id = cma_service_id(id->claim.ps, addr_port(&id->claim.peer));
	req->pkey = 0xffff;
	put_cma_hdr(id, req->private_data);
	return put_private_data(req->private_data + CMA_HDR_BYTES,
				CM_SIDR_REQ_PRIVATE_BYTES - CMA_HDR_BYTES, offer->private_data,
				offer->private_data_len);
}

static void set_mad_path(const struct id *id, struct mad_path *path)
{
	*path = (struct mad_path){
		.grh = true,
		.sgid_index = (uint8_t)id->path.gid.gid_index,
		.hop_limit = id->path.route.hop_limit,
		.traffic_class = id->path.traffic_class,
		.flow_label = id->path.flow_label,
		.sl = id->path.sl,
		.dgid = addr_to_gid(&id->claim.peer),
	};
}

static void drop_prefix(struct id *id)
{
	free(id->prefix);
	id->prefix = NULL;
	id->prefix_bytes = 0;
}

/* @verb: CM_CALL_REQ or CM_CALL_SIDR_REQ */
static int send_request(struct id *id, enum cm_event verb, const struct offer *offer,
			struct cm_msg *msg)
{
	struct mad_path path;
	struct cm_args args = { .path = &path,
				.msg = msg,
				.packet_life_time = id->path.packet_life_time,
				.give_up_ns = id->option.give_up_ns };
	struct engine *engine;
	struct outbox box;
	int err = -EINVAL;

	set_mad_path(id, &path);
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
	id->conn->retry_count = offer->retry_count; /* which XRC's REQ does not say */
	if (!err)
		drop_prefix(id);
out:
	engine_unlock();
	outbox_flush(&box);
	return err;
}

static bool is_datagram(const struct id *id)
{
	return id_transport(id) == IBV_QPT_UD;
}

static int connect_id(struct id *id, const struct rdma_conn_param *param)
{
	struct offer offer;
	struct cm_msg msg;
	int err;

	if (!id->pub.qp && !param && !is_datagram(id))
		return -EINVAL;
	if (!id->attached || !engine_id_is(id, ID_ROUTE_RESOLVED))
		return -EINVAL;
	err = make_offer(id, param, RDMA_MAX_RESP_RES, RDMA_MAX_INIT_DEPTH, &offer);
	if (err)
		return err;
	if (is_datagram(id))
		err = make_sidr_req(id, &offer, &msg);
	else
		err = make_req(id, &offer, &msg);
	return err ? err
		   : send_request(id, is_datagram(id) ? CM_CALL_SIDR_REQ : CM_CALL_REQ, &offer,
				  &msg);
}

int rdma_connect(struct rdma_cm_id *id, struct rdma_conn_param *conn_param)
{
	if (!id)
		return api_return(-EINVAL);
	return sync_return(id_of(id), connect_id(id_of(id), conn_param));
}

/* --- accept -------------------------------------------------------------- */

/* An XRC target is named where an EE context would be, and begins nothing. */
static void put_responder(const struct id *id, const struct offer *offer, struct cm_rep *rep)
{
	if (id_transport(id) == IBV_QPT_XRC_RECV) {
		rep->local_eecn = offer->qpn;
		rep->srq = 1;
		return;
	}
	rep->local_qpn = offer->qpn;
	rep->initiator_depth = offer->initiator_depth;
	rep->flow_control = offer->flow_control != 0;
	rep->srq = offer->srq != 0;
}

static int make_rep(const struct id *id, const struct offer *offer, struct cm_msg *msg)
{
	struct cm_rep *rep = &msg->rep;

	cm_msg_init(msg, CM_ATTR_REP, 0);
	rep->starting_psn = id->starting_psn;
	rep->responder_resources = offer->responder_resources;
	rep->target_ack_delay = id->attached->attr.local_ca_ack_delay;
	rep->rnr_retry_count = offer->rnr_retry_count;
	put_responder(id, offer, rep);
	ece_put_rep(id, msg);
	return put_private_data(rep->private_data, sizeof(rep->private_data), offer->private_data,
				offer->private_data_len);
}

static int step(struct id *id, enum cm_event verb, struct cm_msg *msg)
{
	struct cm_args args = { .msg = msg, .give_up_ns = id->option.give_up_ns };
	struct engine *engine;
	struct outbox box;
	int err = -EINVAL;

	outbox_init(&box);
	engine = engine_lock();
	if (id->conn)
		err = engine_step(engine, &box, id->conn, verb, &args);
	engine_unlock();
	outbox_flush(&box);
	return err;
}

/* What the queue pair is moved with is what the REP will say. */
static int set_depths(struct id *id, const struct offer *offer)
{
	int err = -EINVAL;

	engine_lock();
	if (id->conn && id->state == ID_CONNECT) {
		id->conn->responder_resources = offer->responder_resources;
		id->conn->initiator_depth = offer->initiator_depth;
		err = 0;
	}
	engine_unlock();
	return err;
}

/* What goes wrong here has the peer refused, as it waits for an answer. */
static int send_rep(struct id *id, const struct offer *offer)
{
	struct cm_msg msg;
	int err = make_rep(id, offer, &msg);

	if (!err) {
		engine_lock();
		id->accepted = true;
		engine_unlock();
		err = step(id, CM_CALL_REP, &msg);
	}
	if (err) {
		qp_to_error(id);
		step(id, CM_CALL_REJ, NULL);
	}
	return err;
}

/* Nobody confirms it, so there is no event either. */
static int send_sidr_rep(struct id *id, const struct offer *offer)
{
	struct cm_msg msg;
	int err;

	cm_msg_init(&msg, CM_ATTR_SIDR_REP, 0);
	msg.sidr_rep.status = CM_SIDR_OK;
	msg.sidr_rep.qpn = offer->qpn;
	msg.sidr_rep.qkey = qp_qkey(id);
	err = put_private_data(msg.sidr_rep.private_data, sizeof(msg.sidr_rep.private_data),
			       offer->private_data, offer->private_data_len);
	if (!err)
		err = step(id, CM_CALL_SIDR_REP, &msg);
	if (err) {
		qp_to_error(id);
		step(id, CM_CALL_SIDR_REP, NULL);
	}
	return err;
}

/* Limits of the request; 0xff when there is no connection, which fails later. */
static void peer_limits(struct id *id, uint8_t *responder, uint8_t *initiator)
{
	engine_lock();
	*responder = id->conn ? id->conn->responder_resources : RDMA_MAX_RESP_RES;
	*initiator = id->conn ? id->conn->initiator_depth : RDMA_MAX_INIT_DEPTH;
	engine_unlock();
}

static int accept_id(struct id *id, const struct rdma_conn_param *param)
{
	uint8_t responder, initiator;
	struct offer offer;
	int err;

	if (!id->attached || (!id->pub.qp && !param && !is_datagram(id)))
		return -EINVAL;
	peer_limits(id, &responder, &initiator);
	err = make_offer(id, param, responder, initiator, &offer);
	if (err)
		return err;
	if (is_datagram(id))
		return send_sidr_rep(id, &offer);
	err = set_depths(id, &offer);
	if (!err && id->pub.qp)
		err = qp_to_rts(id);
	return err ? err : send_rep(id, &offer);
}

/* No event follows that could take the place of the request's. */
static int accept_datagram(struct id *id, const struct rdma_conn_param *param)
{
	int err = accept_id(id, param);

	if (!err && id->is_sync)
		sync_drop_event(id);
	return err;
}

int rdma_accept(struct rdma_cm_id *id, struct rdma_conn_param *conn_param)
{
	if (!id)
		return api_return(-EINVAL);
	if (is_datagram(id_of(id)))
		return api_return(accept_datagram(id_of(id), conn_param));
	return sync_return(id_of(id), accept_id(id_of(id), conn_param));
}

/* --- reject, establish, notify ------------------------------------------- */

static int reject_lookup(struct id *id, const void *data, uint8_t bytes)
{
	struct cm_msg msg;
	int err;

	cm_msg_init(&msg, CM_ATTR_SIDR_REP, 0);
	msg.sidr_rep.status = CM_SIDR_REJECT;
	err = put_private_data(msg.sidr_rep.private_data, sizeof(msg.sidr_rep.private_data), data,
			       data ? bytes : 0);
	return err ? err : step(id, CM_CALL_SIDR_REP, &msg);
}

static int reject_id(struct id *id, enum cm_rej_reason reason, const void *data, uint8_t bytes)
{
	struct cm_msg msg;
	int err;

	if (is_datagram(id))
		return reject_lookup(id, data, bytes);
	cm_msg_init(&msg, CM_ATTR_REJ, 0);
	msg.rej.reason = (uint16_t)reason;
	err = put_private_data(msg.rej.private_data, sizeof(msg.rej.private_data), data,
			       data ? bytes : 0);
	return err ? err : step(id, CM_CALL_REJ, &msg);
}

int rdma_reject(struct rdma_cm_id *id, const void *private_data, uint8_t private_data_len)
{
	if (!id)
		return api_return(-EINVAL);
	return api_return(reject_id(id_of(id), CM_REJ_CONSUMER, private_data, private_data_len));
}

int rdma_reject_ece(struct rdma_cm_id *id, const void *private_data, uint8_t private_data_len)
{
	if (!id)
		return api_return(-EINVAL);
	return api_return(
		reject_id(id_of(id), CM_REJ_VENDOR_OPTION, private_data, private_data_len));
}

/* A lookup is answered by it, as by rdma_accept() without parameters: it asks for nothing else. */
static int establish_id(struct id *id)
{
	static const struct offer no_offer;
	int err;

	if (id->pub.qp)
		return -EINVAL;
	if (is_datagram(id))
		return send_sidr_rep(id, &no_offer);
	err = step(id, CM_CALL_RTU, NULL);
	if (err)
		step(id, CM_CALL_REJ, NULL);
	return err;
}

int rdma_establish(struct rdma_cm_id *id)
{
	if (!id)
		return api_return(-EINVAL);
	return api_return(establish_id(id_of(id)));
}

/* The peer's data is as good as its RTU; cmportd sees neither. */
static int establish_by_data(struct id *id)
{
	struct portd_will will;
	bool is_told;
	int err;

	engine_lock();
	is_told = id->conn && host_will_of(id->conn, &will);
	engine_unlock();
	err = step(id, CM_CALL_ESTABLISH, NULL);
	if (!err && is_told) {
		will.state = CM_ESTABLISHED;
		portd_will_is(host_client(), &will);
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
	if (!id)
		return api_return(-EINVAL);
	return api_return(notify_id(id_of(id), event));
}

/* --- disconnect ---------------------------------------------------------- */

/* Whether we begin or answer is for the state to say; a connection that is gone already needs
 * neither, and that is no error. */
static int disconnect_id(struct id *id)
{
	bool begun;
	int err;

	engine_lock();
	begun = id->conn || id->state == ID_LISTEN;
	engine_unlock();
	if (!id->attached || !begun)
		return -EINVAL;
	err = qp_to_error(id);
	if (err)
		return err;
	if (step(id, CM_CALL_DREQ, NULL))
		step(id, CM_CALL_DREP, NULL);
	return 0;
}

int rdma_disconnect(struct rdma_cm_id *id)
{
	if (!id)
		return api_return(-EINVAL);
	return sync_return(id_of(id), disconnect_id(id_of(id)));
}
