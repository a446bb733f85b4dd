/* SPDX-License-Identifier: BSD-2-Clause */
/* Finds device, port and GID index of an address: see device.h. No lock is held. */
#include <endian.h>
#include <errno.h>
#include <string.h>

#include "base/hash.h"
#include "lib/device/device.h"
#include "lib/device/device_sysfs.h"
#include "lib/device/port_info.h"
#include "lib/net/netlink.h"

/* --- GIDs ---------------------------------------------------------------- */

static bool is_ipoib(unsigned int ifindex, struct mad_gid *ret)
{
	struct net_iface iface;

	return ifindex && !net_iface_known(ifindex, &iface) && net_iface_gid(&iface, ret);
}

static int find_in_open(const union addr *addr, const struct mad_gid *gid, bool is_ib,
			unsigned int ifindex, struct gid_entry *ret)
{
	const struct device_list *list = device_list();

	return is_ib ? gid_find_ib(list->verbs, list->n, gid, ifindex, ret)
		     : gid_find(list->verbs, list->n, addr, ifindex, ret);
}

/* Opens devices that may have the address, the first time that its interface or GID is seen. */
static void look_for_device(const struct mad_gid *gid, bool is_ib, unsigned int ifindex)
{
	uint32_t number = ifindex ? ifindex : hash_bytes(gid, sizeof(*gid)) | 1;
	struct device_want want = { .iface = { "", "" } };
	struct net_iface iface;

	if (device_list_has_looked_for(number))
		return;
	if (is_ib) {
		want.gid = *gid;
	} else if (!net_iface_known(ifindex, &iface)) {
		strcpy(want.iface[0], iface.name);
		if (iface.lower && !net_iface_known(iface.lower, &iface))
			strcpy(want.iface[1], iface.name);
	}
	device_list_look_for(&want, number);
}

int device_find_gid(const union addr *addr, unsigned int ifindex, struct gid_entry *ret)
{
	struct mad_gid gid = addr_to_gid(addr);
	bool is_ib = addr_is_ib(addr) || is_ipoib(ifindex, &gid);
	int err;

	look_for_device(&gid, is_ib, ifindex);
	err = find_in_open(addr, &gid, is_ib, ifindex, ret);
	if (!err)
		return 0;
	err = device_list_refresh();
	return err ? err : find_in_open(addr, &gid, is_ib, ifindex, ret);
}

static bool port_is_active(struct device *device, uint8_t port_num)
{
	struct port_info info;

	return !device_is_gone(device) && port_info(device, port_num, &info) == 0 &&
	       info.state == IBV_PORT_ACTIVE;
}

static int find_active_port(struct gid_entry *ret)
{
	const struct device_list *list = device_list();
	uint8_t port_num;
	int i;

	for (i = 0; i < list->n; i++)
		for (port_num = 1; port_num <= list->device[i]->n_ports; port_num++)
			if (port_is_active(list->device[i], port_num) &&
			    !gid_by_index(list->verbs[i], port_num, 0, ret))
				return 0;
	return -ENODEV;
}

int device_find_loopback(struct gid_entry *ret)
{
	int err = device_list_load();

	if (!err && !find_active_port(ret))
		return 0;
	err = device_list_refresh();
	return err ? err : find_active_port(ret);
}

/* --- InfiniBand ---------------------------------------------------------- */

#define PREFIX_BYTES 8 /* of a GID: the subnet prefix */

static bool leads_to(const struct device *device, uint8_t port_num, const union addr *dst)
{
	struct port_info info;
	uint16_t index;

	return !port_info(device, port_num, &info) && info.is_infiniband &&
	       info.state == IBV_PORT_ACTIVE &&
	       !port_pkey_index(device, port_num, be16toh(dst->ib.sib_pkey), &index);
}

/* Finds a port whose GID matches the destination in the first @bytes bytes. */
static int find_port_to(const union addr *dst, size_t bytes, struct gid_entry *ret)
{
	const struct device_list *list = device_list();
	uint8_t num;
	int i;

	for (i = 0; i < list->n; i++) {
		for (num = 1; num <= list->device[i]->n_ports; num++) {
			if (gid_by_index(list->verbs[i], num, 0, ret) == 0 &&
			    memcmp(&ret->gid, &dst->ib.sib_addr, bytes) == 0 &&
			    leads_to(list->device[i], num, dst))
				return 0;
		}
	}
	return -ENODEV;
}

static int find_path_to(const union addr *dst, struct gid_entry *ret)
{
	int err = find_port_to(dst, sizeof(ret->gid), ret);

	return err ? find_port_to(dst, PREFIX_BYTES, ret) : 0;
}

int device_find_path_to(const union addr *dst, struct gid_entry *ret)
{
	int err = device_list_load();

	if (!err && !find_path_to(dst, ret))
		return 0;
	err = device_list_refresh();
	return err ? err : find_path_to(dst, ret);
}
