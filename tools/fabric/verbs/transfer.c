/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Common functions of requester, responder and datagrams: scatter/gather lists, and the packet
 * header.
 */
#include <stdlib.h>

#include "tools/fabric/verbs/carrier.h"
#include "tools/fabric/verbs/context.h"
#include "tools/fabric/verbs/memory.h"
#include "tools/fabric/verbs/receive_queue.h"
#include "tools/fabric/verbs/transport.h"
#include "tools/fabric/verbs/xrc.h"
#include "tools/fabric/wire/route.h"

#define RECEIVE_BYTES_MAX (sizeof(struct fab_receive) + FAB_SGE_MAX * sizeof(struct ibv_sge))

void transport_address(const struct fab_qp *qp, const struct ibv_ah_attr *av,
		       const union ibv_gid *sgid, struct fab_packet *ret)
{
	const struct fab_port *port = &context_of(qp)->device->page->port[qp->attr.port_num - 1];

	memset(ret, 0, sizeof(*ret));
	ret->magic = FAB_MAGIC;
	ret->service = (uint8_t)service_of(qp);
	ret->from_port = qp->attr.port_num;
	ret->subnet = port->subnet;
	ret->pkey = port->pkey[qp->attr.pkey_index];
	ret->sl = av->sl;
	ret->slid = (uint16_t)(port->lid | av->src_path_bits);
	ret->dlid = av->dlid;
	ret->src_qpn = qp->ex.qp_base.qp_num;
	ret->sgid = *sgid;
	if (!av->is_global)
		return;
	ret->flags = FAB_GRH;
	ret->dgid = av->grh.dgid;
	ret->hop_limit = av->grh.hop_limit;
	ret->traffic_class = av->grh.traffic_class;
	ret->flow_label = av->grh.flow_label;
	fab_route_sent(ret);
}

void transport_header(const struct fab_qp *qp, struct fab_packet *ret)
{
	transport_address(qp, &qp->attr.ah_attr, &qp->sgid, ret);
	ret->port_num = qp->peer.port_num;
	ret->dest_qpn = qp->attr.dest_qp_num;
	if (ret->flags & FAB_GRH && is_reliable(qp))
		ret->traffic_class = (uint8_t)((ret->traffic_class & ~FAB_ECN_MASK) | FAB_ECN_ECT);
}

bool transport_may_send(struct fab_context *context, const struct fab_packet *packet,
			const void *payload)
{
	const struct fab_page *page = context->device->page;

	if (page->port[packet->from_port - 1].state != IBV_PORT_ACTIVE || page->is_removed) {
		fab_count(context->counters, packet->from_port, FAB_XMIT_DISCARDS, 1);
		return false;
	}
	fab_count_sent(context->counters, packet);
	udp_capture_write(&context->capture, packet, payload);
	return true;
}

/* If the peer does not get the packet, a timer detects that, or nothing does. */
void transport_send(struct fab_context *context, const char *path, const struct fab_packet *packet,
		    const void *payload)
{
	if (transport_may_send(context, packet, payload))
		context->carrier->send(context, path, packet, payload);
}

/* A part of a list within one of its elements. */
struct piece {
	uint64_t addr;
	uint32_t bytes;
	uint32_t key;
};

/* Return: false at the end of the list. */
static bool piece_at(const struct ibv_sge *sge, uint32_t n_sge, uint64_t offset, uint32_t bytes,
		     struct piece *ret)
{
	uint32_t i;

	for (i = 0; i < n_sge; i++) {
		if (offset < sge[i].length) {
			ret->addr = sge[i].addr + offset;
			ret->key = sge[i].lkey;
			ret->bytes = sge[i].length - (uint32_t)offset;
			if (ret->bytes > bytes)
				ret->bytes = bytes;
			return true;
		}
		offset -= sge[i].length;
	}
	return false;
}

enum ibv_wc_status transport_gather(const struct fab_qp *qp, const struct fab_send *send,
				    uint64_t offset, uint32_t bytes, const void **ret)
{
	const struct fab_context *context = context_of(qp);
	char *at = context->scratch;
	const struct fab_mr *mr;
	struct piece piece;

	*ret = send->inline_data ? send->inline_data + offset : context->scratch;
	while (bytes && !send->inline_data) {
		if (!piece_at(send->sge, send->n_sge, offset, bytes, &piece))
			return IBV_WC_LOC_LEN_ERR;
		mr = memory_find(context, qp->ex.qp_base.pd, piece.key, piece.addr, piece.bytes, 0);
		if (!mr || !memory_load(mr, piece.addr, at, piece.bytes))
			return IBV_WC_LOC_PROT_ERR;
		at += piece.bytes;
		offset += piece.bytes;
		bytes -= piece.bytes;
	}
	return IBV_WC_SUCCESS;
}

enum ibv_wc_status transport_scatter(const struct fab_qp *qp, const struct ibv_sge *sge,
				     uint32_t n_sge, uint64_t offset, const void *data,
				     uint32_t bytes)
{
	const struct fab_context *context = context_of(qp);
	struct ibv_pd *pd = xrc_pd(qp, qp->responder.srqn);
	const char *from = data;
	struct piece piece;
	struct fab_mr *mr;

	while (bytes) {
		if (!piece_at(sge, n_sge, offset, bytes, &piece))
			return IBV_WC_LOC_LEN_ERR;
		mr = memory_find(context, pd, piece.key, piece.addr, piece.bytes,
				 IBV_ACCESS_LOCAL_WRITE);
		if (!mr || !memory_store(mr, piece.addr, from, piece.bytes))
			return IBV_WC_LOC_PROT_ERR;
		from += piece.bytes;
		offset += piece.bytes;
		bytes -= piece.bytes;
	}
	return IBV_WC_SUCCESS;
}

static void report_limit(struct fab_srq *srq)
{
	struct ibv_async_event event = { .event_type = IBV_EVENT_SRQ_LIMIT_REACHED };

	if (!srq->limit || srq->queue.count >= srq->limit)
		return;
	srq->limit = 0;
	event.element.srq = &srq->ibv;
	context_report_event(to_context(srq->ibv.context), &event);
}

/* A copy, so that its place in the queue can be reused during the message. */
struct fab_receive *transport_take_receive(struct fab_qp *qp)
{
	struct fab_srq *srq = xrc_srq(qp, qp->responder.srqn);
	struct fab_receive_queue *queue = srq ? &srq->queue : &qp->rq;
	struct fab_receive *first = receive_queue_first(queue);

	if (!first)
		return NULL;
	if (!qp->receive_buffer)
		qp->receive_buffer = malloc(RECEIVE_BYTES_MAX);
	if (!qp->receive_buffer)
		return NULL;
	memcpy(qp->receive_buffer, first, queue->stride);
	receive_queue_drop(queue);
	if (srq)
		report_limit(srq);
	return (struct fab_receive *)qp->receive_buffer;
}
