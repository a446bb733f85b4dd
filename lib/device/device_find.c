/* SPDX-License-Identifier: BSD-2-Clause */
/* Finds device, port and GID index of an address: see device.h. No lock is held. */
#include <endian.h>
#include <errno.h>
#include <string.h>

#include "lib/device/device.h"
#include "lib/net/netlink.h"

/* --- GIDs ---------------------------------------------------------------- */

static bool is_ipoib(unsigned int ifindex, struct mad_gid *ret)
{
	struct net_iface iface;

	return ifindex && !net_iface_known(ifindex, &iface) && net_iface_gid(&iface, ret);
}

int device_find_gid(const union addr *addr, unsigned int ifindex, struct gid_entry *ret)
{
	const struct device_list *list = device_list();
	struct mad_gid gid = addr_to_gid(addr);

	if (addr_is_ib(addr) || is_ipoib(ifindex, &gid))
		return gid_find_ib(list->verbs, list->n, &gid, ifindex, ret);
	return gid_find(list->verbs, list->n, addr, ifindex, ret);
}

static bool port_is_active(struct device *device, uint8_t port_num)
{
	struct ibv_port_attr attr;

	return !device_is_gone(device) && ibv_query_port(device->verbs, port_num, &attr) == 0 &&
	       attr.state == IBV_PORT_ACTIVE;
}

int device_find_loopback(struct gid_entry *ret)
{
	const struct device_list *list = device_list();
	uint8_t port_num;
	int i;

	for (i = 0; i < list->n; i++)
		for (port_num = 1; port_num <= list->device[i]->n_ports; port_num++)
			if (port_is_active(list->device[i], port_num))
				return gid_by_index(list->verbs[i], port_num, 0, ret);
	return -ENODEV;
}

/* --- InfiniBand ---------------------------------------------------------- */

#define PREFIX_BYTES 8 /* of a GID: the subnet prefix */
#define PKEY_BASE    0x7fff

int device_pkey_index(const struct gid_entry *gid, uint16_t pkey, uint16_t *ret)
{
	struct ibv_port_attr attr;
	__be16 entry;
	int i;

	if (ibv_query_port(gid->verbs, gid->port_num, &attr))
		return -ENOENT;
	for (i = 0; i < attr.pkey_tbl_len; i++) {
		if (ibv_query_pkey(gid->verbs, gid->port_num, i, &entry))
			continue;
		if (((be16toh(entry) ^ pkey) & PKEY_BASE) != 0)
			continue;
		*ret = (uint16_t)i;
		return 0;
	}
	return -ENOENT;
}

static bool leads_to(const struct gid_entry *gid, const union addr *dst, size_t bytes)
{
	uint16_t index;

	return memcmp(&gid->gid, &dst->ib.sib_addr, bytes) == 0 &&
	       device_pkey_index(gid, be16toh(dst->ib.sib_pkey), &index) == 0;
}

/* Finds a port whose GID matches the destination in the first @bytes bytes. */
static int find_port_to(const union addr *dst, size_t bytes, struct gid_entry *ret)
{
	const struct device_list *list = device_list();
	struct ibv_port_attr attr;
	uint8_t num;
	int i;

	for (i = 0; i < list->n; i++) {
		for (num = 1; num <= list->device[i]->n_ports; num++) {
			if (ibv_query_port(list->verbs[i], num, &attr) ||
			    attr.link_layer != IBV_LINK_LAYER_INFINIBAND ||
			    attr.state != IBV_PORT_ACTIVE)
				continue;
			if (gid_by_index(list->verbs[i], num, 0, ret) == 0 &&
			    leads_to(ret, dst, bytes))
				return 0;
		}
	}
	return -ENODEV;
}

int device_find_path_to(const union addr *dst, struct gid_entry *ret)
{
	int err = find_port_to(dst, sizeof(ret->gid), ret);

	return err ? find_port_to(dst, PREFIX_BYTES, ret) : 0;
}
