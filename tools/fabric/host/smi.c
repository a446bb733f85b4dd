/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * QP0: requests of programs to the subnet management agents of an InfiniBand subnet. Each subnet is
 * one switch; the GUID of a host's port determines its switch port. The requesting host plays all
 * agents, from the pages of the others. Nothing can be set: there are no routes, and LIDs are
 * assigned by the manager (subnet_manager.c).
 */
#include "tools/fabric/host/smi.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <endian.h>
#include <stdio.h>
#include <string.h>

#include "tools/fabric/host/sa.h"
#include "tools/fabric/wire/device.h"
#include "tools/fabric/wire/route.h"

#define PERMISSIVE    0xffff
#define SWITCH_GUID   UINT64_C(0x0050430000ff0000) /* plus the number of the subnet */
#define SWITCH_PORTS  36
#define LID_BLOCK     64
#define GUID_BLOCK    8
#define NO_PORT	      0xff /* in a switch: packets to that LID are dropped */
#define NODE_CA	      1
#define NODE_SWITCH   2
#define PHYS_LINK_UP  5
#define PHYS_POLLING  2
#define IS_SM	      2 /* port capability */
#define SM_MASTER     3
#define BAD_ATTRIBUTE 0x000c /* status, IBTA vol. 1, 13.4.7: method and attribute */
#define BAD_VALUE     0x001c /* status: attribute modifier */

/* --- the subnet ----------------------------------------------------------- */

/* The GUID of host N ends in N00. */
static unsigned int switch_port_of(const struct smi_end *end)
{
	return ((unsigned int)(end->node_guid >> 8 & 0xff) - 1) * end->n_ports + end->number;
}

static void add_lid(const struct host *host, struct smi_subnet *subnet, uint16_t lid)
{
	struct smi_end *end = &subnet->end[subnet->n_ends];
	struct fab_owner owner;
	struct fab_page page;

	if (subnet->n_ends == FAB_SWITCH_PORTS_MAX ||
	    fab_folder_owner_of_lid(&host->folder, subnet->number, lid, &owner) ||
	    !sa_read_page(host, &owner, &page) || lid != page.port[owner.port_num - 1].lid)
		return; /* the other LIDs of a port differ in path bits */
	memcpy(end->host, owner.host, sizeof(end->host));
	end->number = owner.port_num;
	end->n_ports = (uint8_t)page.n_ports;
	end->node_guid = be64toh(page.node_guid);
	end->port = page.port[owner.port_num - 1];
	end->switch_port = (uint8_t)switch_port_of(end);
	subnet->n_ends++;
}

void smi_read_subnet(const struct host *host, uint8_t number, struct smi_subnet *ret)
{
	char path[FAB_PATH_BYTES];
	unsigned int subnet, lid;
	struct dirent *entry;
	DIR *lids;

	ret->number = number;
	ret->n_ends = 0;
	snprintf(path, sizeof(path), "%s/lids", host->folder.dir);
	lids = opendir(path);
	while (lids && (entry = readdir(lids)))
		if (sscanf(entry->d_name, "%u.%u", &subnet, &lid) == 2 && subnet == number)
			add_lid(host, ret, (uint16_t)lid);
	if (lids)
		closedir(lids);
}

const struct smi_end *smi_end_at(const struct smi_subnet *subnet, unsigned int switch_port)
{
	unsigned int i;

	for (i = 0; i < subnet->n_ends; i++)
		if (subnet->end[i].switch_port == switch_port)
			return &subnet->end[i];
	return NULL;
}

static const struct smi_end *end_of_lid(const struct smi_subnet *subnet, uint16_t lid)
{
	unsigned int i;

	for (i = 0; i < subnet->n_ends; i++)
		if (lid >> subnet->end[i].port.lmc ==
		    subnet->end[i].port.lid >> subnet->end[i].port.lmc)
			return &subnet->end[i];
	return NULL;
}

uint8_t smi_switch_ports(const struct smi_subnet *subnet)
{
	uint8_t most = SWITCH_PORTS;
	unsigned int i;

	for (i = 0; i < subnet->n_ends; i++)
		if (subnet->end[i].switch_port > most)
			most = subnet->end[i].switch_port;
	return most;
}

/* --- attributes, IBTA vol. 1, 14.2.5 -------------------------------------- */

static void put16(uint8_t *at, unsigned int value)
{
	at[0] = (uint8_t)(value >> 8);
	at[1] = (uint8_t)value;
}

static void put32(uint8_t *at, uint32_t value)
{
	put16(at, value >> 16);
	put16(at + 2, value);
}

static void put64(uint8_t *at, uint64_t value)
{
	put32(at, (uint32_t)(value >> 32));
	put32(at + 4, (uint32_t)value);
}

static uint64_t switch_guid(const struct smi_place *place)
{
	return SWITCH_GUID | place->subnet->number;
}

static unsigned int get_node_desc(const struct smi_place *place, uint32_t modifier, uint8_t *data)
{
	(void)modifier;
	if (place->end)
		snprintf((char *)data, UMAD_LEN_SMP_DATA, "%s " FAB_DEVICE, place->end->host);
	else
		snprintf((char *)data, UMAD_LEN_SMP_DATA, "soft fabric, subnet %u",
			 place->subnet->number + 1u);
	return 0;
}

static unsigned int get_node_info(const struct smi_place *place, uint32_t modifier, uint8_t *data)
{
	const struct smi_end *end = place->end;
	uint64_t guid = end ? end->node_guid : switch_guid(place);

	(void)modifier;
	data[0] = data[1] = 1; /* base and class version */
	data[2] = end ? NODE_CA : NODE_SWITCH;
	data[3] = end ? end->n_ports : smi_switch_ports(place->subnet);
	put64(data + 4, guid);	/* system */
	put64(data + 12, guid); /* node */
	put64(data + 20, end ? be64toh(end->port.gid[0].gid.global.interface_id) : guid);
	put16(data + 28, end ? fab_port_pkeys(&end->port) : 1);
	data[36] = end ? end->number : place->entry;
	return 0;
}

static unsigned int get_switch_info(const struct smi_place *place, uint32_t modifier, uint8_t *data)
{
	(void)modifier;
	if (place->end)
		return BAD_ATTRIBUTE;
	put16(data, FAB_LID_MCAST);	    /* size of the linear table */
	put16(data + 6, FAB_LID_MCAST - 1); /* the last LID in it */
	data[11] = SA_LIFE_TIME << 3;
	return 0;
}

static unsigned int get_guid_info(const struct smi_place *place, uint32_t modifier, uint8_t *data)
{
	unsigned int i;

	if (!place->end) {
		put64(data, modifier ? 0 : switch_guid(place));
		return 0;
	}
	if (modifier >= FAB_GIDS / GUID_BLOCK)
		return BAD_VALUE;
	for (i = 0; i < GUID_BLOCK; i++)
		memcpy(data + sizeof(uint64_t) * i,
		       &place->end->port.gid[modifier * GUID_BLOCK + i].gid.global.interface_id,
		       sizeof(uint64_t));
	return 0;
}

/* Bytes 28 to 51, equal at both ends of a link. */
static void put_link(uint8_t *data, uint8_t port_num, bool is_up)
{
	data[28] = port_num;
	data[29] = data[30] = FAB_WIDTH_4X | 1; /* enabled and supported include 1x */
	data[31] = FAB_WIDTH_4X;
	data[32] =
		(uint8_t)((FAB_SPEED_QDR | 2 | 1) << 4 | (is_up ? IBV_PORT_ACTIVE : IBV_PORT_DOWN));
	data[33] = (uint8_t)((is_up ? PHYS_LINK_UP : PHYS_POLLING) << 4 | PHYS_POLLING);
	data[35] = FAB_SPEED_QDR << 4 | FAB_SPEED_QDR | 2 | 1;
	data[36] = SA_MTU << 4;
	data[37] = 1 << 4; /* one virtual lane */
	data[41] = SA_MTU;
	data[43] = 1 << 4;
}

/* Also for the node's other ports; on the wire a port's own number may be given as 0. */
static unsigned int get_port_info_of_host(const struct smi_place *place, uint32_t modifier,
					  uint8_t *data)
{
	const struct smi_end *end = place->end;
	const struct fab_port *port = &end->port;
	const struct smi_end *other =
		smi_end_at(place->subnet, end->switch_port - end->number + modifier);

	if (modifier > end->n_ports)
		return BAD_VALUE;
	if (modifier && modifier != end->number) {
		if (!other)
			return BAD_VALUE; /* in another subnet */
		port = &other->port;
	}
	memcpy(data + 8, &port->gid[0].gid.global.subnet_prefix, sizeof(uint64_t));
	put16(data + 16, port->lid);
	put16(data + 18, port->sm_lid);
	put32(data + 20, fab_port_cap_flags(port) | (port->lid == port->sm_lid ? IS_SM : 0));
	put_link(data, end->number, port->state == IBV_PORT_ACTIVE);
	data[34] = port->lmc;
	data[36] = (uint8_t)(port->mtu << 4);
	data[50] = FAB_GIDS / GUID_BLOCK * GUID_BLOCK;
	data[51] = SA_LIFE_TIME;
	return 0;
}

static unsigned int get_port_info(const struct smi_place *place, uint32_t modifier, uint8_t *data)
{
	const struct smi_end *end;

	if (place->end)
		return get_port_info_of_host(place, modifier, data);
	if (modifier > smi_switch_ports(place->subnet))
		return BAD_VALUE;
	end = smi_end_at(place->subnet, modifier);
	put_link(data, place->entry, !modifier || (end && end->port.state == IBV_PORT_ACTIVE));
	if (!modifier)
		put16(data + 16, SMI_LID_SWITCH);
	if (!modifier && place->subnet->n_ends)
		put16(data + 18, place->subnet->end[0].port.sm_lid);
	return 0;
}

static unsigned int get_pkeys(const struct smi_place *place, uint32_t modifier, uint8_t *data)
{
	unsigned int i;

	if (modifier & 0xffff)
		return BAD_VALUE;
	for (i = 0; place->end && i < FAB_PKEYS; i++)
		put16(data + sizeof(uint16_t) * i, place->end->port.pkey[i]);
	if (!place->end)
		put16(data, FAB_PKEY_DEFAULT);
	return 0;
}

static unsigned int get_linear_table(const struct smi_place *place, uint32_t modifier,
				     uint8_t *data)
{
	const struct smi_end *end;
	unsigned int i;

	if (place->end)
		return BAD_ATTRIBUTE;
	if (modifier > (FAB_LID_MCAST - 1) / LID_BLOCK)
		return BAD_VALUE;
	for (i = 0; i < LID_BLOCK; i++) {
		end = end_of_lid(place->subnet, (uint16_t)(modifier * LID_BLOCK + i));
		data[i] = end ? end->switch_port : NO_PORT;
	}
	if (modifier == SMI_LID_SWITCH / LID_BLOCK)
		data[SMI_LID_SWITCH % LID_BLOCK] = 0;
	return 0;
}

static unsigned int get_sm_info(const struct smi_place *place, uint32_t modifier, uint8_t *data)
{
	const struct smi_end *end = place->end;

	(void)modifier;
	if (!end || end->port.lid != end->port.sm_lid)
		return BAD_ATTRIBUTE;
	memcpy(data, &end->port.gid[0].gid.global.interface_id, sizeof(uint64_t));
	data[20] = SM_MASTER;
	return 0;
}

static const struct attribute {
	uint16_t id;
	unsigned int (*get)(const struct smi_place *place, uint32_t modifier, uint8_t *data);
} attributes[] = {
	{ UMAD_SM_ATTR_NODE_DESC, get_node_desc },     { UMAD_SM_ATTR_NODE_INFO, get_node_info },
	{ UMAD_SM_ATTR_SWITCH_INFO, get_switch_info }, { UMAD_SM_ATTR_GUID_INFO, get_guid_info },
	{ UMAD_SM_ATTR_PORT_INFO, get_port_info },     { UMAD_SM_ATTR_PKEY_TABLE, get_pkeys },
	{ UMAD_SM_ATTR_LINEAR_FT, get_linear_table },  { UMAD_SM_ATTR_SM_INFO, get_sm_info },
};

unsigned int smi_get(const struct smi_place *place, uint16_t attr_id, uint32_t modifier,
		     uint8_t data[UMAD_LEN_SMP_DATA])
{
	size_t i;

	memset(data, 0, UMAD_LEN_SMP_DATA);
	for (i = 0; i < sizeof(attributes) / sizeof(attributes[0]); i++)
		if (attr_id == attributes[i].id)
			return attributes[i].get(place, modifier, data);
	return BAD_ATTRIBUTE;
}

/* Nothing can be set. Return: the status of the response. */
static unsigned int get_attribute(const struct smi_place *place, struct umad_smp *smp)
{
	unsigned int status = smi_get(place, ntohs(smp->attr_id), ntohl(smp->attr_mod), smp->data);

	return smp->method == UMAD_METHOD_GET ? status : BAD_ATTRIBUTE;
}

/* --- directed routes ------------------------------------------------------ */

/* One hop: a host has no exit except the present port. */
static bool follow_link(struct smi_place *place, uint8_t exit)
{
	const struct smi_end *end = place->end;

	if (end) {
		if (place->entry || exit != end->number || end->port.state != IBV_PORT_ACTIVE)
			return false;
		*place = (struct smi_place){ place->subnet, NULL, end->switch_port };
		return true;
	}
	end = smi_end_at(place->subnet, exit);
	if (!end || end->port.state != IBV_PORT_ACTIVE)
		return false;
	*place = (struct smi_place){ place->subnet, end, end->number };
	return true;
}

/* IBTA vol. 1, 14.2.2: follows the ports of the initial path, and records the return path. */
static bool walk_route(struct smi_place *place, struct umad_smp *smp)
{
	unsigned int hop;

	if (smp->dr_slid != htons(PERMISSIVE) || smp->dr_dlid != htons(PERMISSIVE) ||
	    smp->hop_cnt >= UMAD_SMP_MAX_HOPS)
		return false;
	for (hop = 1; hop <= smp->hop_cnt; hop++) {
		if (!follow_link(place, smp->initial_path[hop]))
			return false;
		smp->return_path[hop] = place->entry;
	}
	return true;
}

static bool look_up(struct smi_place *place, uint16_t lid)
{
	const struct smi_end *end = end_of_lid(place->subnet, lid);
	bool is_own = lid == PERMISSIVE || (end && place->end == end);

	if (is_own)
		return true;
	*place = (struct smi_place){ place->subnet, end, end ? end->number : 0 };
	return end ? end->port.state == IBV_PORT_ACTIVE : lid == SMI_LID_SWITCH;
}

bool smi_is_for(const uint8_t mad[FAB_MAD_BYTES])
{
	uint8_t mgmt_class = ((const struct umad_smp *)(const void *)mad)->mgmt_class;

	return mgmt_class == UMAD_CLASS_SUBN_LID_ROUTED ||
	       mgmt_class == UMAD_CLASS_SUBN_DIRECTED_ROUTE;
}

bool smi_answer(const struct host *host, uint8_t port_num, const struct ib_user_mad *head,
		uint8_t mad[FAB_MAD_BYTES])
{
	const struct fab_port *port = &host->page->port[port_num - 1];
	struct umad_smp *smp = (struct umad_smp *)(void *)mad;
	bool is_directed = smp->mgmt_class == UMAD_CLASS_SUBN_DIRECTED_ROUTE;
	static struct smi_subnet subnet; /* large */
	struct smi_place place = { .subnet = &subnet };
	unsigned int status;

	if (fab_port_is_roce(port) ||
	    (smp->method != UMAD_METHOD_GET && smp->method != UMAD_METHOD_SET))
		return false;
	smi_read_subnet(host, port->subnet, &subnet);
	place.end = end_of_lid(&subnet, port->lid);
	if (!place.end ||
	    !(is_directed ? walk_route(&place, smp) : look_up(&place, ntohs(head->addr.lid))))
		return false;
	status = get_attribute(&place, smp);
	smp->method = UMAD_METHOD_GET_RESP;
	smp->status = htons((uint16_t)(status | (is_directed ? UMAD_SMP_DIRECTION : 0)));
	smp->hop_ptr = 0;
	return true;
}
