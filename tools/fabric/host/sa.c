/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Requests to the subnet administrator, and its answers: see sa.h.
 */
#include "tools/fabric/host/sa.h"

#include <arpa/inet.h>
#include <string.h>

#define CLASS_AT	1
#define METHOD_AT	3
#define RESPONSE	0x80
#define UNSUPPORTED	0x000c /* method and attribute, IBTA vol. 1, 13.4.7 */
#define SA_STATUS_SHIFT 8
#define SA_HEADER_BYTES 20 /* between the headers of RMPP and the data */
#define MCMEMBER_BYTES	56 /* a multiple of 8 */
#define RMPP_DATA	1
#define RMPP_ACTIVE	1
#define RMPP_FIRST	2
#define RMPP_LAST	4

/* The manager is on the port whose LID all know. */
static bool is_ours(const struct host *host, uint8_t port_num)
{
	const struct fab_port *port = &host->page->port[port_num - 1];

	return port->link_layer == IBV_LINK_LAYER_INFINIBAND && port->lid == port->sm_lid;
}

/* A table of one record, in one segment: a query by GIDs or by MGID never matches more. IBTA vol.
 * 1, 13.6.2. */
static void make_table(struct umad_sa_packet *packet, size_t bytes)
{
	packet->rmpp_hdr.rmpp_version = UMAD_RMPP_VERSION;
	packet->rmpp_hdr.rmpp_type = RMPP_DATA;
	packet->rmpp_hdr.rmpp_rtime_flags = RMPP_ACTIVE | RMPP_FIRST | RMPP_LAST;
	packet->rmpp_hdr.rmpp_status = 0;
	packet->rmpp_hdr.seg_num = htonl(1);
	packet->rmpp_hdr.paylen_newwin = htonl((uint32_t)(SA_HEADER_BYTES + bytes));
	packet->attr_offset = htons((uint16_t)(bytes / 8));
}

static bool is_get(uint8_t method)
{
	return method == UMAD_METHOD_GET || method == UMAD_SA_METHOD_GET_TABLE;
}

/* Return: the status of the answer, as it is in the header, in the host's byte order. */
static unsigned int answer_request(struct host *host, struct umad_sa_packet *packet)
{
	uint16_t attr = ntohs(packet->mad_hdr.attr_id);
	uint8_t method = packet->mad_hdr.method;

	if (attr == UMAD_SA_ATTR_PATH_REC && is_get(method))
		return sa_path(host, packet) << SA_STATUS_SHIFT;
	if (attr == UMAD_SA_ATTR_MCMEMBER_REC &&
	    (is_get(method) || method == UMAD_METHOD_SET || method == UMAD_SA_METHOD_DELETE))
		return sa_group(host, packet) << SA_STATUS_SHIFT;
	return UNSUPPORTED;
}

bool sa_received(struct host *host, uint8_t port_num, const struct ib_user_mad *head,
		 const uint8_t mad[FAB_MAD_BYTES])
{
	struct umad_sa_packet packet;
	unsigned int status;

	if (mad[CLASS_AT] != UMAD_CLASS_SUBN_ADM || mad[METHOD_AT] & RESPONSE ||
	    !is_ours(host, port_num))
		return false;
	memcpy(&packet, mad, sizeof(packet));
	status = answer_request(host, &packet);
	if (!status && packet.mad_hdr.method == UMAD_SA_METHOD_GET_TABLE)
		make_table(&packet, packet.mad_hdr.attr_id == htons(UMAD_SA_ATTR_PATH_REC)
					    ? sizeof(struct ibv_path_record)
					    : MCMEMBER_BYTES);
	/* Get and Set are both answered by GetResp. */
	packet.mad_hdr.method = packet.mad_hdr.method == UMAD_METHOD_SET
					? UMAD_METHOD_GET_RESP
					: packet.mad_hdr.method | RESPONSE;
	packet.mad_hdr.status = htons((uint16_t)status);
	if (status)
		memset(packet.data, 0, sizeof(packet.data));
	gsi_send(host, port_num, head, (const uint8_t *)&packet);
	return true;
}
