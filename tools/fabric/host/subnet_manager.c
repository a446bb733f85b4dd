/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The subnet manager: it assigns LIDs, GID and partitions to a host's InfiniBand ports. It is on
 * port 1 of the first host of each subnet.
 */
#include <endian.h>
#include <string.h>
#include <unistd.h>

#include "tools/fabric/host/host.h"
#include "tools/fabric/wire/route.h"

#define PREFIX_DEFAULT 0xfe80000000000000ull
#define PREFIX_ROUTED  0xfec0000000000000ull /* plus the number of the subnet, from 1 */

static uint16_t lid_of(const struct host *host, unsigned int number, unsigned int port_num)
{
	return (uint16_t)(((number - 1) * host->n_ports + port_num) << host->lmc);
}

static uint8_t subnet_of(const struct host *host)
{
	return (uint8_t)((host->number - 1) % host->n_subnets);
}

/* The default prefix is for a single subnet; routers do not forward it. IBTA vol. 1, 4.1.1. */
static uint64_t prefix_of(const struct host *host)
{
	return host->n_subnets == 1 ? PREFIX_DEFAULT : PREFIX_ROUTED + subnet_of(host) + 1;
}

/* --- LIDs ---------------------------------------------------------------- */

static void take_lids(const struct host *host, uint8_t port_num)
{
	const struct fab_port *port = &host->page->port[port_num - 1];
	char path[FAB_PATH_BYTES];
	uint16_t i;

	for (i = 0; i < 1u << port->lmc; i++) {
		fab_folder_lid(&host->folder, port->subnet, (uint16_t)(port->lid + i), path);
		if (fab_folder_link_owner(&host->folder, port_num, path))
			host_log(host, "its LID %u is another port's", port->lid + i);
	}
}

void subnet_forget(const struct host *host, uint8_t port_num)
{
	const struct fab_port *port = &host->page->port[port_num - 1];
	char path[FAB_PATH_BYTES];
	uint16_t i;

	for (i = 0; port->lid && i < 1u << port->lmc; i++) {
		fab_folder_lid(&host->folder, port->subnet, (uint16_t)(port->lid + i), path);
		unlink(path);
	}
}

static bool is_lid_free(const struct host *host, uint8_t port_num, uint16_t lid)
{
	struct fab_owner owner;
	uint16_t i;

	for (i = 0; i < 1u << host->lmc; i++)
		if (!fab_folder_owner_of_lid(&host->folder, subnet_of(host), (uint16_t)(lid + i),
					     &owner) &&
		    (owner.port_num != port_num || strcmp(owner.host, host->folder.host) != 0))
			return false;
	return true;
}

void subnet_set_lid(struct host *host, uint16_t lid)
{
	struct fab_port *port = &host->page->port[0];

	/* All hosts know the administrator's LID, and would not be notified of a change. */
	if (port->link_layer != IBV_LINK_LAYER_INFINIBAND || port->lid == port->sm_lid || !lid ||
	    lid >= FAB_LID_ROUTER || lid & ((1u << host->lmc) - 1) || !is_lid_free(host, 1, lid)) {
		host_log(host, "cannot have LID %u", lid);
		return;
	}
	subnet_forget(host, 1);
	fab_page_write_begin(host->page);
	port->lid = lid;
	fab_page_write_end(host->page);
	sysfs_write(host);
	take_lids(host, 1);
	events_send(host, IBV_EVENT_LID_CHANGE, 1);
}

/* --- a port --------------------------------------------------------------- */

static void fill_partitions(const struct host *host, struct fab_port *port)
{
	unsigned int i;

	for (i = 0; i < host->n_pkeys; i++)
		port->pkey[1 + i] = host->pkey[i];
}

void subnet_set_pkeys(struct host *host, const char *text)
{
	struct fab_port *port = &host->page->port[0];
	char *end = (char *)(uintptr_t)text;

	host->n_pkeys = 0;
	while (*end && host->n_pkeys < FAB_PKEYS - 1) {
		host->pkey[host->n_pkeys++] = (uint16_t)strtoul(end, &end, 16);
		end += strspn(end, ",");
	}
	fab_page_write_begin(host->page);
	memset(&port->pkey[1], 0, sizeof(port->pkey) - sizeof(port->pkey[0]));
	fill_partitions(host, port);
	fab_page_write_end(host->page);
	sysfs_write(host);
	events_send(host, IBV_EVENT_PKEY_CHANGE, 1);
}

void subnet_fill(struct host *host, uint8_t port_num)
{
	struct fab_port *port = &host->page->port[port_num - 1];

	port->lmc = host->lmc;
	port->subnet = subnet_of(host);
	port->lid = lid_of(host, host->number, port_num);
	port->sm_lid = lid_of(host, port->subnet + 1u, 1);
	port->gid[0].gid.global.subnet_prefix = htobe64(prefix_of(host));
	port->gid[0].gid.global.interface_id = htobe64(be64toh(host->page->node_guid) + port_num);
	port->gid[0].type = IBV_GID_TYPE_IB;
	fill_partitions(host, port);
	names_enter(host, port_num, &port->gid[0].gid);
	take_lids(host, port_num);
}
