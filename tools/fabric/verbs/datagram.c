/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Datagrams: one packet each, to one queue pair or to all that are attached to a group. A packet
 * without a receiver or a receive is dropped.
 */
#include <arpa/inet.h>
#include <unistd.h>

#include "tools/fabric/verbs/carrier.h"
#include "tools/fabric/verbs/completion.h"
#include "tools/fabric/verbs/transport.h"
#include "tools/fabric/wire/quirks.h"

#define IPV4_BYTES	   20
#define ROCE_BYTES	   24 /* RoCE v2: BTH, DETH, ICRC */
#define IMM_BYTES	   4
#define GRH_NEXT_IBA	   0x1b
#define MTU_BYTES(mtu)	   (128u << (mtu))
#define QKEY_IS_PRIVILEGED 0x80000000u
#define PACKET_TYPE_IPV6   9
#define PACKET_TYPE_IPV4   10

static void fill_header(const struct fab_qp *qp, const struct fab_send *send,
			struct fab_packet *ret)
{
	transport_address(qp, &send->ah->attr, &send->ah->sgid, ret);
	ret->op = FAB_OP_DATAGRAM;
	ret->dest_qpn = send->remote_qpn;
	/* IBTA vol. 1, 10.2.5: if the high bit is set, the queue pair's own Q_Key is sent. */
	ret->qkey = send->remote_qkey & QKEY_IS_PRIVILEGED ? qp->attr.qkey : send->remote_qkey;
	ret->bytes = (uint32_t)send->bytes;
	ret->flags |= FAB_FIRST | FAB_LAST;
	if (send->flags & IBV_SEND_SOLICITED)
		ret->flags |= FAB_SOLICITED;
	if (send->opcode == IBV_WR_SEND_WITH_IMM) {
		ret->flags |= FAB_IMM;
		ret->imm = send->imm;
	}
}

enum ibv_wc_status datagram_send(struct fab_qp *qp, const struct fab_send *send)
{
	struct fab_context *context = context_of(qp);
	const struct fab_port *port = &context->device->page->port[qp->attr.port_num - 1];
	enum ibv_wc_status status;
	struct fab_packet packet;
	const void *payload;

	if (send->bytes > MTU_BYTES(port->mtu))
		return IBV_WC_LOC_LEN_ERR;
	if (send->ah->attr.port_num != qp->attr.port_num)
		return IBV_WC_LOC_QP_OP_ERR;
	status = transport_gather(qp, send, 0, (uint32_t)send->bytes, &payload);
	if (status != IBV_WC_SUCCESS)
		return status;
	fill_header(qp, send, &packet);
	if (transport_may_send(context, &packet, payload))
		context->carrier->send_datagram(qp, send->ah, &packet, payload);
	return IBV_WC_SUCCESS;
}

/* --- receiving ----------------------------------------------------------- */

/* Size of the UDP payload of a datagram over RoCE v2. */
static uint32_t roce_bytes(const struct fab_packet *packet)
{
	return ROCE_BYTES + (packet->flags & FAB_IMM ? IMM_BYTES : 0) + ((packet->bytes + 3) & ~3u);
}

/* RoCE v2: the IP header is in place of the GRH; that of IPv4 in the second half, after zeros. */
static void write_grh(const struct fab_packet *packet, bool is_ethernet, uint8_t ret[FAB_GRH_BYTES])
{
	struct ibv_grh grh = {
		.version_tclass_flow = htonl(6u << 28 | (uint32_t)packet->traffic_class << 20 |
					     (packet->flow_label & 0xfffff)),
		.paylen = htons((uint16_t)packet->bytes),
		.next_hdr = GRH_NEXT_IBA,
		.hop_limit = packet->hop_limit,
		.sgid = packet->sgid,
		.dgid = packet->dgid,
	};

	memset(ret, 0, FAB_GRH_BYTES);
	if (!(packet->flags & FAB_GRH))
		return;
	if (!is_ethernet)
		memcpy(ret, &grh, sizeof(grh));
	else
		udp_put_ip(packet, roce_bytes(packet),
			   ret + (fab_gid_is_ipv4(&packet->dgid) ? FAB_GRH_BYTES - IPV4_BYTES : 0));
}

static uint8_t sl_of(const struct fab_qp *qp, const struct fab_packet *packet)
{
	const struct fab_page *page = context_of(qp)->device->page;

	if (fab_has_quirk(page, FAB_QUIRK_NO_SL))
		return 0;
	if (fab_has_quirk(page, FAB_QUIRK_SENT_SL) ||
	    page->port[qp->attr.port_num - 1].link_layer != IBV_LINK_LAYER_ETHERNET)
		return packet->sl;
	return fab_gid_is_ipv4(&packet->dgid) ? PACKET_TYPE_IPV4 : PACKET_TYPE_IPV6;
}

static void complete_receive(struct fab_qp *qp, const struct fab_receive *receive,
			     const struct fab_packet *packet, enum ibv_wc_status status)
{
	const struct fab_port *port = &context_of(qp)->device->page->port[qp->attr.port_num - 1];
	struct ibv_wc wc = {
		.wr_id = receive->wr_id,
		.status = status,
		.opcode = IBV_WC_RECV,
		.byte_len = FAB_GRH_BYTES + packet->bytes,
		.qp_num = qp->ex.qp_base.qp_num,
		.src_qp = packet->src_qpn,
		.pkey_index = qp->attr.pkey_index,
		.slid = packet->slid,
		.sl = sl_of(qp, packet),
		.dlid_path_bits = packet->dlid & ((1u << port->lmc) - 1),
	};

	if (packet->flags & FAB_GRH)
		wc.wc_flags |= IBV_WC_GRH;
	if (packet->flags & FAB_IMM) {
		wc.wc_flags |= IBV_WC_WITH_IMM;
		wc.imm_data = packet->imm;
	}
	cq_push(to_cq(qp->ex.qp_base.recv_cq), &wc, packet->flags & FAB_SOLICITED);
}

/* On InfiniBand, switches forward a group's packets to ports of their subnet that have joined. */
static bool has_joined(const struct fab_qp *qp, const struct fab_packet *packet)
{
	const struct fab_device *device = context_of(qp)->device;
	const struct fab_port *port = &device->page->port[qp->attr.port_num - 1];
	struct fab_owner us = { .port_num = (uint8_t)qp->attr.port_num };
	char path[FAB_PATH_BYTES];

	if (port->link_layer == IBV_LINK_LAYER_ETHERNET)
		return true;
	memcpy(us.host, device->folder.host, sizeof(us.host));
	fab_folder_joined(&device->folder, &packet->dgid, &us, path);
	return port->subnet == packet->subnet && access(path, F_OK) == 0;
}

/* The number of a queue pair that was destroyed may have been reused. */
static bool is_attached(const struct fab_qp *qp, const union ibv_gid *gid)
{
	unsigned int i;

	for (i = 0; i < qp->n_mgids; i++)
		if (memcmp(&qp->mgid[i], gid, sizeof(*gid)) == 0)
			return true;
	return false;
}

void datagram_receive(struct fab_qp *qp, const struct fab_packet *packet, const void *payload)
{
	const struct fab_port *port = &context_of(qp)->device->page->port[qp->attr.port_num - 1];
	struct fab_receive *receive;
	uint8_t grh[FAB_GRH_BYTES];
	enum ibv_wc_status status;

	if (packet->qkey != qp->attr.qkey)
		return;
	if (packet->flags & FAB_GRH && fab_gid_is_group(&packet->dgid) &&
	    (!is_attached(qp, &packet->dgid) || !has_joined(qp, packet)))
		return;
	receive = transport_take_receive(qp);
	if (!receive)
		return;
	write_grh(packet, port->link_layer == IBV_LINK_LAYER_ETHERNET, grh);
	status = receive->bytes < FAB_GRH_BYTES + packet->bytes ? IBV_WC_LOC_LEN_ERR
								: IBV_WC_SUCCESS;
	if (status == IBV_WC_SUCCESS)
		status = transport_scatter(qp, receive->sge, receive->n_sge, 0, grh, sizeof(grh));
	if (status == IBV_WC_SUCCESS)
		status = transport_scatter(qp, receive->sge, receive->n_sge, sizeof(grh), payload,
					   packet->bytes);
	complete_receive(qp, receive, packet, status);
	if (status != IBV_WC_SUCCESS)
		qp_enter_error(qp, -1);
}
