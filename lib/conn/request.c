/* SPDX-License-Identifier: BSD-2-Clause */
/* Parses requests: see request.h. */
#include "lib/conn/request.h"

#include <endian.h>
#include <errno.h>
#include <string.h>

#include "mad/cma_hdr.h"

/* --- peer and path ------------------------------------------------------- */

static int set_ip_addrs(struct request *request, unsigned int ifindex)
{
	struct cma_hdr hdr;

	if (!cma_hdr_read(request->data, &hdr))
		return -EINVAL;
	addr_unpack(hdr.ip_version, hdr.src_addr, hdr.src_port, ifindex, &request->src);
	addr_unpack(hdr.ip_version, hdr.dst_addr, (uint16_t)request->conn->service_id, ifindex,
		    &request->dst);
	if (addr_is_any(&request->src) || addr_is_multicast(&request->src) ||
	    addr_is_any(&request->dst) || addr_is_multicast(&request->dst))
		return -EINVAL;
	return 0;
}

/* A RoCE GID is an IP address, so the program can identify its peers by their addresses. */
static bool is_address_of_sender(const struct request *request, const union addr *addr)
{
	struct mad_gid gid = addr_to_gid(addr);

	return path_is_native(&request->path) ||
	       memcmp(&gid, &request->conn->path.dgid, sizeof(gid)) == 0;
}

/* For a request without the CMA header: the addresses are those of the path. */
static void set_ib_addrs(struct request *request)
{
	union addr *src = &request->src, *dst = &request->dst;
	uint16_t pkey = htobe16(request->path.pkey);

	memset(src, 0, sizeof(*src));
	src->ib.sib_family = AF_IB;
	src->ib.sib_pkey = pkey;
	*dst = *src;
	memcpy(&src->ib.sib_addr, &request->path.dgid, sizeof(src->ib.sib_addr));
	memcpy(&dst->ib.sib_addr, &request->path.gid.gid, sizeof(dst->ib.sib_addr));
	dst->ib.sib_sid = htobe64(request->conn->service_id);
	dst->ib.sib_sid_mask = ~UINT64_C(0);
}

int request_locate(struct request *request)
{
	struct path *path = &request->path;
	struct cma_hdr hdr;
	int err = path_of_request(port_of(request->conn->port), request->conn, request->msg, path);

	if (err)
		return err;
	if (path_is_native(path) && !cma_hdr_read(request->data, &hdr)) {
		set_ib_addrs(request);
		return 0;
	}
	request->header_bytes = CMA_HDR_BYTES;
	err = set_ip_addrs(request, path->gid.ifindex);
	if (!err && !is_address_of_sender(request, &request->src))
		err = -EINVAL;
	return err ? err : path_find_return_route(path, &request->dst, &request->src);
}

/* --- kinds of requests --------------------------------------------------- */

struct request request_of(struct cm_conn *conn, const struct cm_msg *msg)
{
	struct request request = { .conn = conn, .msg = msg };
	const struct cm_req *req = &msg->req;

	if (msg->hdr.attr_id == CM_ATTR_SIDR_REQ) {
		request.data = msg->sidr_req.private_data;
		request.qp_type = IBV_QPT_UD;
		return request;
	}
	request.data = req->private_data;
	if (req->transport_service_type == CM_TRANSPORT_RC)
		request.qp_type = IBV_QPT_RC;
	else if (req->transport_service_type == CM_TRANSPORT_UC)
		request.qp_type = IBV_QPT_UC;
	else if (req->transport_service_type == CM_TRANSPORT_EXTENDED &&
		 req->extended_transport_type == CM_EXTENDED_XRC)
		request.qp_type = IBV_QPT_XRC_RECV;
	return request;
}

/* --- for the program ----------------------------------------------------- */

static void set_req(struct event *event, const struct cm_msg *msg, uint8_t header_bytes)
{
	const struct cm_req *req = &msg->req;
	struct rdma_conn_param *param = &event->pub.param.conn;
	uint8_t bytes = CM_REQ_PRIVATE_BYTES - header_bytes;

	memcpy(event->private_data, req->private_data + header_bytes, bytes);
	param->private_data = event->private_data;
	param->private_data_len = bytes;
	param->responder_resources = req->initiator_depth;
	param->initiator_depth = req->responder_resources;
	param->flow_control = req->flow_control;
	param->retry_count = req->retry_count;
	param->rnr_retry_count = req->rnr_retry_count;
	param->srq = req->srq;
	param->qp_num = req->local_qpn;
	event->ece.vendor_id = req->vendor_id;
	event->ece.options = msg->hdr.attr_mod;
}

static void set_sidr_req(struct event *event, const struct cm_sidr_req *req, uint8_t header_bytes)
{
	struct rdma_ud_param *param = &event->pub.param.ud;
	uint8_t bytes = CM_SIDR_REQ_PRIVATE_BYTES - header_bytes;

	memcpy(event->private_data, req->private_data + header_bytes, bytes);
	param->private_data = event->private_data;
	param->private_data_len = bytes;
}

void request_fill_event(const struct request *request, struct event *event)
{
	if (request_is_lookup(request))
		set_sidr_req(event, &request->msg->sidr_req, request->header_bytes);
	else
		set_req(event, request->msg, request->header_bytes);
}
