/* SPDX-License-Identifier: BSD-2-Clause */
/* Requests to the subnet administrator, and its responses: see sa.h. */
#include "tools/fabric/host/sa.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

#include "tools/fabric/host/rmpp.h"

#define RESPONSE	0x80
#define UNSUPPORTED	0x000c /* status for method and attribute, IBTA vol. 1, 13.4.7 */
#define SA_STATUS_SHIFT 8
#define ANSWER_TIME	18 /* 4.096 us * 2^18 */

enum method_bit {
	GET = 1,
	TABLE = 2,
	SET = 4,
	DELETE = 8,
};

/* IBTA vol. 1, 13.4.8.1. */
static unsigned int get_class(struct host *host, const struct umad_sa_packet *request,
			      struct sa_answer *answer)
{
	struct umad_class_port_info info = {
		.base_ver = 1,
		.class_ver = UMAD_SA_CLASS_VERSION,
		.cap_mask = htons(UMAD_SA_CAP_MASK_IS_SUBNET_OPT_REC_SUP |
				  UMAD_SA_CAP_MASK_IS_UD_MCAST_SUP |
				  UMAD_SA_CAP_MASK_IS_PORTINFO_CAP_MASK_MATCH_SUP),
		.cap_mask2_resp_time = htonl(ANSWER_TIME),
	};

	(void)host;
	(void)request;
	sa_answer_add(answer, &info);
	return 0;
}

/* --- attributes ---------------------------------------------------------- */

static const struct attribute {
	uint16_t id;
	uint8_t methods;
	uint8_t bytes; /* of a record in a table: a multiple of 8 */
	unsigned int (*answer)(struct host *host, const struct umad_sa_packet *request,
			       struct sa_answer *answer);
} attributes[] = {
	{ UMAD_ATTR_CLASS_PORT_INFO, GET, 72, get_class },
	{ UMAD_SA_ATTR_NODE_REC, GET | TABLE, 112, sa_node },
	{ UMAD_SA_ATTR_PORT_INFO_REC, GET | TABLE, 72, sa_port_info },
	{ UMAD_SA_ATTR_SERVICE_REC, GET | TABLE | SET | DELETE, 176, sa_service },
	{ UMAD_SA_ATTR_PATH_REC, GET | TABLE, 64, sa_path },
	{ UMAD_SA_ATTR_MCMEMBER_REC, GET | TABLE | SET | DELETE, 56, sa_group },
};

static unsigned int bit_of(uint8_t method)
{
	switch (method) {
	case UMAD_METHOD_GET:
		return GET;
	case UMAD_SA_METHOD_GET_TABLE:
		return TABLE;
	case UMAD_METHOD_SET:
		return SET;
	case UMAD_SA_METHOD_DELETE:
		return DELETE;
	}
	return 0;
}

static const struct attribute *find_attribute(const struct umad_sa_packet *request)
{
	size_t i;

	for (i = 0; i < sizeof(attributes) / sizeof(attributes[0]); i++)
		if (ntohs(request->mad_hdr.attr_id) == attributes[i].id &&
		    attributes[i].methods & bit_of(request->mad_hdr.method))
			return &attributes[i];
	return NULL;
}

/* --- responses ------------------------------------------------------------ */

/* The manager is on the port whose LID is every port's sm_lid. */
static bool is_ours(const struct host *host, uint8_t port_num)
{
	const struct fab_port *port = &host->page->port[port_num - 1];

	return port->link_layer == IBV_LINK_LAYER_INFINIBAND && port->lid == port->sm_lid;
}

static void send_table(struct host *host, uint8_t port_num, const struct ib_user_mad *head,
		       struct umad_sa_packet *packet, const struct sa_answer *answer)
{
	size_t bytes = answer->n * answer->record_bytes;
	uint8_t *message = malloc(RMPP_HEADERS_BYTES + bytes);

	if (!message)
		return; /* the requester retransmits */
	packet->attr_offset = htons((uint16_t)(answer->record_bytes / 8));
	memcpy(message, packet, RMPP_HEADERS_BYTES);
	if (bytes)
		memcpy(message + RMPP_HEADERS_BYTES, answer->records, bytes);
	rmpp_send(host, port_num, NULL, head, message, RMPP_HEADERS_BYTES + bytes);
	free(message);
}

/* A request for one record must not match two. IBTA vol. 1, 15.4.6. */
static unsigned int status_of(const struct sa_answer *answer, bool is_table)
{
	if (answer->is_short)
		return UMAD_SA_STATUS_NO_RESOURCES;
	if (is_table || answer->n == 1)
		return UMAD_SA_STATUS_SUCCESS;
	return answer->n ? UMAD_SA_STATUS_TOO_MANY_RECORDS : UMAD_SA_STATUS_NO_RECORDS;
}

static void answer_request(struct host *host, uint8_t port_num, const struct ib_user_mad *head,
			   struct umad_sa_packet *packet)
{
	const struct attribute *attribute = find_attribute(packet);
	bool is_table = packet->mad_hdr.method == UMAD_SA_METHOD_GET_TABLE;
	struct sa_answer answer = { .record_bytes = attribute ? attribute->bytes : 0 };
	unsigned int status = UNSUPPORTED;

	if (attribute) {
		status = attribute->answer(host, packet, &answer);
		status = (status ? status : status_of(&answer, is_table)) << SA_STATUS_SHIFT;
	}
	/* The response to both Get and Set is GetResp. */
	packet->mad_hdr.method = packet->mad_hdr.method == UMAD_METHOD_SET
					 ? UMAD_METHOD_GET_RESP
					 : packet->mad_hdr.method | RESPONSE;
	packet->mad_hdr.status = htons((uint16_t)status);
	memset(packet->data, 0, sizeof(packet->data));
	if (!status && is_table) {
		send_table(host, port_num, head, packet, &answer);
	} else {
		if (!status)
			memcpy(packet->data, answer.records, answer.record_bytes);
		gsi_send(host, port_num, head, (const uint8_t *)packet);
	}
	free(answer.records);
}

bool sa_received(struct host *host, uint8_t port_num, const struct ib_user_mad *head,
		 const uint8_t mad[FAB_MAD_BYTES])
{
	struct umad_sa_packet packet;

	memcpy(&packet, mad, sizeof(packet));
	if (packet.mad_hdr.mgmt_class != UMAD_CLASS_SUBN_ADM || packet.mad_hdr.method & RESPONSE ||
	    rmpp_is_active(mad) || !is_ours(host, port_num))
		return false;
	answer_request(host, port_num, head, &packet);
	return true;
}

void sa_forget(struct host *host)
{
	sa_groups_forget(host);
	sa_services_forget(host);
}
