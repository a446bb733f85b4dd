/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * NodeRecord and PortInfoRecord, IBTA vol. 1, 15.2.5.2 and 15.2.5.3: the attributes of the subnet
 * management agents (smi.h), for all ports.
 */
#include <arpa/inet.h>
#include <endian.h>
#include <string.h>

#include "tools/fabric/host/sa.h"
#include "tools/fabric/host/smi.h"

#define NODE_INFO_AT	4
#define NODE_INFO_BYTES 40
#define NODE_DESC_AT	(NODE_INFO_AT + NODE_INFO_BYTES)
#define NODE_BYTES	112
#define PORT_INFO_AT	4
#define PORT_BYTES	72
#define SWITCH_PORTS_AT (NODE_INFO_AT + 3)
#define CAPABILITIES_AT (PORT_INFO_AT + 20)
#define CAPABILITIES	(UINT64_C(1) << 7)
#define ALL_OF_THESE	0x80000000u /* attribute modifier: at least these capabilities */

static const struct sa_component node_components[] = {
	{ 1 << 0, 0, 2 },					   /* LID */
	{ 1 << 2, 4, 1 },   { 1 << 3, 5, 1 },	 { 1 << 4, 6, 1 }, /* type */
	{ 1 << 5, 7, 1 },   { 1 << 6, 8, 8 },			   /* GUIDs of system, node, port */
	{ 1 << 7, 16, 8 },  { 1 << 8, 24, 8 },	 { 1 << 9, 32, 2 },
	{ 1 << 10, 34, 2 }, { 1 << 11, 36, 4 },	 { 1 << 12, 40, 1 }, /* port number */
	{ 1 << 13, 41, 3 }, { 1 << 14, 44, 64 },		     /* description */
	{ 0, 0, 0 },
};

static const struct sa_component port_components[] = {
	{ 1 << 0, 0, 2 }, /* LID and port number */
	{ 1 << 1, 2, 1 },
	{ 1 << 3, 4, 8 },
	{ 1 << 4, 12, 8 }, /* prefix, LID, LID of the manager */
	{ 1 << 5, 20, 2 },
	{ 1 << 6, 22, 2 },
	{ CAPABILITIES, CAPABILITIES_AT, 4 },
	{ 0, 0, 0 },
};

/* Components without a row are not supported in requests. */
static bool may_ask(const struct sa_component *components, uint64_t mask)
{
	for (; components->mask; components++)
		mask &= ~components->mask;
	return mask == 0;
}

static void put_lid(uint8_t *record, const struct smi_end *end)
{
	uint16_t lid = htons(end ? end->port.lid : SMI_LID_SWITCH);

	memcpy(record, &lid, sizeof(lid));
}

/* --- nodes --------------------------------------------------------------- */

static void fill_node(const struct smi_place *place, uint8_t record[NODE_BYTES])
{
	uint8_t data[UMAD_LEN_SMP_DATA];

	memset(record, 0, NODE_BYTES);
	put_lid(record, place->end);
	smi_get(place, UMAD_SM_ATTR_NODE_INFO, 0, data);
	memcpy(record + NODE_INFO_AT, data, NODE_INFO_BYTES);
	smi_get(place, UMAD_SM_ATTR_NODE_DESC, 0, data);
	memcpy(record + NODE_DESC_AT, data, sizeof(data));
}

unsigned int sa_node(struct host *host, const struct umad_sa_packet *request,
		     struct sa_answer *answer)
{
	uint64_t mask = be64toh(request->comp_mask);
	static struct smi_subnet subnet; /* large */
	struct smi_place place = { .subnet = &subnet };
	uint8_t record[NODE_BYTES];
	unsigned int i;

	if (!may_ask(node_components, mask))
		return UMAD_SA_STATUS_REQ_INVALID;
	smi_read_subnet(host, host->page->port[0].subnet, &subnet);
	for (i = 0; i <= subnet.n_ends; i++) {
		place.end = i < subnet.n_ends ? &subnet.end[i] : NULL;
		fill_node(&place, record);
		if (sa_suits(node_components, mask, request->data, record))
			sa_answer_add(answer, record);
	}
	return UMAD_SA_STATUS_SUCCESS;
}

/* --- ports --------------------------------------------------------------- */

static bool has_capabilities(const struct umad_sa_packet *request, const uint8_t *record)
{
	uint32_t asked, has;

	memcpy(&asked, request->data + CAPABILITIES_AT, sizeof(asked));
	memcpy(&has, record + CAPABILITIES_AT, sizeof(has));
	return (has & asked) == asked;
}

static void add_port(const struct smi_place *place, uint8_t number,
		     const struct umad_sa_packet *request, struct sa_answer *answer)
{
	uint64_t mask = be64toh(request->comp_mask);
	bool in_part = mask & CAPABILITIES && request->mad_hdr.attr_mod == htonl(ALL_OF_THESE);
	uint8_t record[PORT_BYTES] = { 0 };

	put_lid(record, place->end);
	record[2] = number;
	smi_get(place, UMAD_SM_ATTR_PORT_INFO, number, record + PORT_INFO_AT);
	if (in_part && !has_capabilities(request, record))
		return;
	if (sa_suits(port_components, in_part ? mask & ~CAPABILITIES : mask, request->data, record))
		sa_answer_add(answer, record);
}

unsigned int sa_port_info(struct host *host, const struct umad_sa_packet *request,
			  struct sa_answer *answer)
{
	static struct smi_subnet subnet; /* large */
	struct smi_place place = { .subnet = &subnet };
	uint8_t node[NODE_BYTES];
	unsigned int i;

	if (!may_ask(port_components, be64toh(request->comp_mask)))
		return UMAD_SA_STATUS_REQ_INVALID;
	smi_read_subnet(host, host->page->port[0].subnet, &subnet);
	for (i = 0; i < subnet.n_ends; i++) {
		place.end = &subnet.end[i];
		add_port(&place, place.end->number, request, answer);
	}
	place.end = NULL;
	fill_node(&place, node);
	for (i = 0; i <= node[SWITCH_PORTS_AT]; i++)
		add_port(&place, (uint8_t)i, request, answer);
	return UMAD_SA_STATUS_SUCCESS;
}
