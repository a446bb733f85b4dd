/* SPDX-License-Identifier: BSD-2-Clause */
/* Builds connection messages from a program's parameters: see message.h. */
#include "lib/conn/message.h"

#include <errno.h>
#include <string.h>

#include "lib/diag/warning.h"
#include "lib/id/claims.h"
#include "lib/verbs/ece.h"
#include "lib/verbs/qp.h"
#include "mad/cma_hdr.h"

#define CM_RESPONSE_TIMEOUT 20 /* 4.096 us * 2^20, 4.3 s: what the kernel offers and requests */
#define MAX_CM_RETRIES	    15
#define RETRY_COUNT_MAX	    7
#define QPN_MASK	    0xffffff

/* --- parameters ---------------------------------------------------------- */

static uint8_t min_u8(uint8_t a, uint8_t b)
{
	return a < b ? a : b;
}

/* Puts the prefix from the address (rdma_addrinfo.ai_connect) in front. */
static int put_prefix(const struct id *id, struct conn_params *params)
{
	size_t room = sizeof(params->joined) - params->private_data_len;

	if (!id->prefix_bytes)
		return 0;
	if (id->prefix_bytes > room)
		return -EINVAL;
	memcpy(params->joined, id->prefix, id->prefix_bytes);
	if (params->private_data_len)
		memcpy(params->joined + id->prefix_bytes, params->private_data,
		       params->private_data_len);
	params->private_data = params->joined;
	params->private_data_len += (uint8_t)id->prefix_bytes;
	return 0;
}

/* Chooses a number of RDMA READs: 0xff means the device's maximum, limited by @match_max. */
static int choose_depth(const struct id *id, uint8_t asked, uint8_t device_max, uint8_t match_max,
			uint8_t *ret)
{
	if (asked == RDMA_MAX_RESP_RES) {
		*ret = min_u8(device_max, match_max);
		return 0;
	}
	if (asked > device_max && id->pub.ps == RDMA_PS_TCP)
		return -EINVAL;
	*ret = asked;
	return 0;
}

int conn_params_init(const struct id *id, const struct rdma_conn_param *param,
		     uint8_t peer_responder, uint8_t peer_initiator, struct conn_params *params)
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
	*params = (struct conn_params){
		.private_data = param->private_data,
		.private_data_len = param->private_data ? param->private_data_len : 0,
		.flow_control = param->flow_control,
		.retry_count = min_u8(param->retry_count, RETRY_COUNT_MAX),
		.rnr_retry_count = min_u8(param->rnr_retry_count, RETRY_COUNT_MAX),
		.srq = id->pub.qp ? id->pub.qp->srq != NULL : param->srq,
		.qpn = (id->pub.qp ? id->pub.qp->qp_num : param->qp_num) & QPN_MASK,
	};
	err = choose_depth(id, param->responder_resources, (uint8_t)limits->max_qp_rd_atom,
			   peer_responder, &params->responder_resources);
	if (!err)
		err = choose_depth(id, param->initiator_depth, (uint8_t)limits->max_qp_init_rd_atom,
				   peer_initiator, &params->initiator_depth);
	return err ? err : put_prefix(id, params);
}

static int put_private_data(uint8_t *to, size_t room, const void *data, size_t bytes)
{
	if (bytes > room) {
		warning_of_private_data(bytes, room);
		return -EINVAL;
	}
	if (bytes)
		memcpy(to, data, bytes);
	return 0;
}

/* --- the active side ----------------------------------------------------- */

static void put_cma_hdr(const struct id *id, uint8_t *to)
{
	struct cma_hdr hdr = { .src_port = addr_port(&id->claim.local) };

	hdr.ip_version = addr_pack(&id->claim.local, hdr.src_addr);
	addr_pack(&id->claim.peer, hdr.dst_addr);
	wire_encode(&cma_hdr_layout, &hdr, to);
}

/* AF_IB needs no header: the service id identifies the service. */
static int put_request_data(const struct id *id, uint8_t *to, size_t room,
			    const struct conn_params *params)
{
	size_t header = addr_is_ib(&id->claim.peer) ? 0 : CMA_HDR_BYTES;

	if (header)
		put_cma_hdr(id, to);
	return put_private_data(to + header, room - header, params->private_data,
				params->private_data_len);
}

/* IBTA vol. 1, 12.7.1. An XRC initiator serves no READs and sets no limits: they stay 0. */
static void put_transport(const struct id *id, const struct conn_params *params, struct cm_req *req)
{
	enum ibv_qp_type type = id_transport(id);

	req->initiator_depth = params->initiator_depth;
	req->flow_control = params->flow_control & 1;
	if (type == IBV_QPT_XRC_SEND) {
		req->transport_service_type = CM_TRANSPORT_EXTENDED;
		req->extended_transport_type = CM_EXTENDED_XRC;
		return;
	}
	req->transport_service_type = type == IBV_QPT_UC ? CM_TRANSPORT_UC : CM_TRANSPORT_RC;
	req->responder_resources = params->responder_resources;
	req->retry_count = params->retry_count;
	req->rnr_retry_count = params->rnr_retry_count;
	req->srq = params->srq != 0;
}

int message_req(const struct id *id, const struct conn_params *params, struct cm_msg *msg)
{
	struct cm_req *req = &msg->req;
	int err;

	cm_msg_init(msg, CM_ATTR_REQ, 0);
	err = put_request_data(id, req->private_data, CM_REQ_PRIVATE_BYTES, params);
	if (!err)
		err = path_check_pkey(&id->path);
	if (err)
		return err;
	req->service_id = claims_service_id(&id->claim.peer, id->claim.ps);
	req->local_qpn = params->qpn;
	req->remote_cm_response_timeout = CM_RESPONSE_TIMEOUT;
	req->starting_psn = id->starting_psn;
	req->local_cm_response_timeout = CM_RESPONSE_TIMEOUT;
	req->pkey = id->path.pkey;
	req->path_mtu = id->path.mtu;
	req->max_cm_retries = MAX_CM_RETRIES;
	put_transport(id, params, req);
	ece_put_req(id, msg);
	path_to_req(&id->path, id->attached->attr.local_ca_ack_delay, &req->primary);
	return 0;
}

int message_sidr_req(const struct id *id, const struct conn_params *params, struct cm_msg *msg)
{
	struct cm_sidr_req *req = &msg->sidr_req;
	int err;

	cm_msg_init(msg, CM_ATTR_SIDR_REQ, 0);
	req->service_id = claims_service_id(&id->claim.peer, id->claim.ps);
	req->pkey = id->path.pkey;
	err = put_request_data(id, req->private_data, CM_SIDR_REQ_PRIVATE_BYTES, params);
	return err ? err : path_check_pkey(&id->path);
}

/* --- the passive side ---------------------------------------------------- */

/* The QPN of an XRC target is in the EECN field; it initiates nothing. */
static void put_responder(const struct id *id, const struct conn_params *params, struct cm_rep *rep)
{
	if (id_transport(id) == IBV_QPT_XRC_RECV) {
		rep->local_eecn = params->qpn;
		rep->srq = 1;
		return;
	}
	rep->local_qpn = params->qpn;
	rep->initiator_depth = params->initiator_depth;
	rep->flow_control = params->flow_control & 1;
	rep->srq = params->srq != 0;
}

int message_rep(const struct id *id, const struct conn_params *params, struct cm_msg *msg)
{
	struct cm_rep *rep = &msg->rep;

	cm_msg_init(msg, CM_ATTR_REP, 0);
	rep->starting_psn = id->starting_psn;
	rep->responder_resources = params->responder_resources;
	rep->target_ack_delay = id->attached->attr.local_ca_ack_delay;
	rep->rnr_retry_count = params->rnr_retry_count;
	put_responder(id, params, rep);
	ece_put_rep(id, msg);
	return put_private_data(rep->private_data, sizeof(rep->private_data), params->private_data,
				params->private_data_len);
}

int message_sidr_rep(struct id *id, const struct conn_params *params, struct cm_msg *msg)
{
	struct cm_sidr_rep *rep = &msg->sidr_rep;

	cm_msg_init(msg, CM_ATTR_SIDR_REP, 0);
	rep->status = CM_SIDR_OK;
	rep->qpn = params->qpn;
	rep->qkey = qp_qkey(id);
	return put_private_data(rep->private_data, sizeof(rep->private_data), params->private_data,
				params->private_data_len);
}

/* --- rejections ----------------------------------------------------------- */

int message_rej(enum cm_rej_reason reason, const void *data, uint8_t bytes, struct cm_msg *msg)
{
	cm_msg_init(msg, CM_ATTR_REJ, 0);
	msg->rej.reason = (uint16_t)reason;
	return put_private_data(msg->rej.private_data, sizeof(msg->rej.private_data), data,
				data ? bytes : 0);
}

int message_sidr_reject(const void *data, uint8_t bytes, struct cm_msg *msg)
{
	cm_msg_init(msg, CM_ATTR_SIDR_REP, 0);
	msg->sidr_rep.status = CM_SIDR_REJECT;
	return put_private_data(msg->sidr_rep.private_data, sizeof(msg->sidr_rep.private_data),
				data, data ? bytes : 0);
}
