/* SPDX-License-Identifier: BSD-2-Clause */
/* The device, as presented by libibumad. */
#include "tools/fabric/umad/ca.h"

#include <endian.h>
#include <errno.h>
#include <infiniband/umad.h>
#include <string.h>

#include "tools/fabric/wire/device.h"
#include "tools/fabric/wire/quirks.h"

#define NODE_TYPE_CA 1

static int open_page(struct fab_folder *folder, const struct fab_page **ret)
{
	char path[FAB_PATH_BYTES];

	if (fab_folder_find(folder))
		return -ENODEV;
	fab_folder_page(folder, path);
	if (fab_page_open(path, ret))
		return -ENODEV;
	if (!(*ret)->is_removed && !fab_has_quirk(*ret, FAB_QUIRK_NO_CM))
		return 0;
	fab_page_close(*ret);
	return -ENODEV;
}

int ca_find(const char *name, int *port_num, struct fab_folder *ret)
{
	char device[FAB_NAME_BYTES];
	const struct fab_page *page;
	int n_ports;

	if (open_page(ret, &page))
		return -ENODEV;
	n_ports = (int)page->n_ports;
	fab_page_device(page, device);
	fab_page_close(page);
	if (name && strcmp(name, device) != 0)
		return -ENODEV;
	if (*port_num == UMAD_ANY_PORT)
		*port_num = 1;
	return *port_num < 0 || *port_num > n_ports ? -EINVAL : 0;
}

int umad_get_cas_names(char cas[][UMAD_CA_NAME_LEN], int max)
{
	const struct fab_page *page;
	struct fab_folder folder;

	if (max < 1 || open_page(&folder, &page))
		return 0;
	fab_page_device(page, cas[0]);
	fab_page_close(page);
	return 1;
}

struct umad_device_node *umad_get_ca_device_list(void)
{
	static char names[1][UMAD_CA_NAME_LEN]; /* valid as long as the list */
	struct umad_device_node *node;

	if (umad_get_cas_names(names, 1) != 1)
		return NULL;
	node = calloc(1, sizeof(*node));
	if (node)
		node->ca_name = names[0];
	return node;
}

void umad_free_ca_device_list(struct umad_device_node *head)
{
	free(head);
}

int umad_sort_ca_device_list(struct umad_device_node **head, size_t size)
{
	(void)head; /* the list has one element */
	(void)size;
	return 0;
}

/* --- ports --------------------------------------------------------------- */

static int fill_port(umad_port_t *ret, const struct fab_page *page, int port_num)
{
	const struct fab_port *port = &page->port[port_num - 1];
	int i;

	memset(ret, 0, sizeof(*ret));
	strcpy(ret->ca_name, page->device);
	ret->portnum = port_num;
	ret->base_lid = port->lid;
	ret->lmc = port->lmc;
	ret->sm_lid = port->sm_lid;
	ret->state = port->state;
	ret->phys_state = fab_port_phys_state(port);
	ret->rate = FAB_RATE_GBPS;
	ret->capmask = htobe32(fab_port_cap_flags(port));
	ret->gid_prefix = port->gid[0].gid.global.subnet_prefix;
	ret->port_guid = port->gid[0].gid.global.interface_id;
	strcpy(ret->link_layer, fab_port_is_roce(port) ? "Ethernet" : "InfiniBand");
	ret->pkeys = calloc(FAB_PKEYS, sizeof(*ret->pkeys));
	if (!ret->pkeys)
		return -ENOMEM;
	ret->pkeys_size = FAB_PKEYS;
	for (i = 0; i < FAB_PKEYS; i++)
		ret->pkeys[i] = port->pkey[i];
	return 0;
}

/* @port_num: UMAD_ANY_PORT is replaced. Return: 0 or -errno. */
static int read_page(const char *ca_name, int *port_num, struct fab_page *ret)
{
	const struct fab_page *page;
	struct fab_folder folder;
	int err = ca_find(ca_name, port_num, &folder);

	if (err)
		return err;
	if (open_page(&folder, &page))
		return -ENODEV;
	fab_page_read(page, ret);
	fab_page_close(page);
	return 0;
}

int umad_get_port(const char *ca_name, int portnum, umad_port_t *port)
{
	struct fab_page page;
	int err = read_page(ca_name, &portnum, &page);

	return err ? err : fill_port(port, &page, portnum);
}

int umad_release_port(umad_port_t *port)
{
	free(port->pkeys);
	port->pkeys = NULL;
	return 0;
}

int umad_release_ca(umad_ca_t *ca)
{
	int i;

	for (i = 0; i < UMAD_CA_MAX_PORTS; i++) {
		if (ca->ports[i])
			umad_release_port(ca->ports[i]);
		free(ca->ports[i]);
		ca->ports[i] = NULL;
	}
	return 0;
}

static int fill_ca(umad_ca_t *ca, const struct fab_page *page)
{
	uint32_t i;
	int err = 0;

	memset(ca, 0, sizeof(*ca));
	strcpy(ca->ca_name, page->device);
	strcpy(ca->fw_ver, FAB_FW_VER);
	strcpy(ca->hw_ver, "1");
	strcpy(ca->ca_type, "soft fabric");
	ca->node_type = NODE_TYPE_CA;
	ca->numports = (int)page->n_ports;
	ca->node_guid = page->node_guid;
	ca->system_guid = page->node_guid;
	for (i = 1; !err && i <= page->n_ports; i++) {
		ca->ports[i] = calloc(1, sizeof(umad_port_t));
		err = ca->ports[i] ? fill_port(ca->ports[i], page, (int)i) : -ENOMEM;
	}
	if (err)
		umad_release_ca(ca);
	return err;
}

int umad_get_ca(const char *ca_name, umad_ca_t *ca)
{
	struct fab_page page;
	int any = UMAD_ANY_PORT;
	int err = read_page(ca_name, &any, &page);

	return err ? err : fill_ca(ca, &page);
}

int umad_get_ca_portguids(const char *ca_name, __be64 *portguids, int max)
{
	umad_ca_t ca;
	int i, err = umad_get_ca(ca_name, &ca);

	if (err)
		return err;
	if (ca.numports + 1 > max) {
		umad_release_ca(&ca);
		return -ENOMEM;
	}
	portguids[0] = 0;
	for (i = 1; i <= ca.numports; i++)
		portguids[i] = ca.ports[i]->port_guid;
	i = ca.numports + 1;
	umad_release_ca(&ca);
	return i;
}

int umad_get_issm_path(const char *ca_name, int portnum, char path[], int max)
{
	(void)ca_name;
	(void)portnum;
	(void)path;
	(void)max;
	return -ENOENT;
}
