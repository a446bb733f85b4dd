/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * RAI_SA: addresses by service name, from the subnet administrator of an InfiniBand subnet. See
 * addrinfo.h.
 */
#include "lib/names/addrinfo.h"

#include <errno.h>
#include <string.h>

#include "lib/device/device.h"

/* Service records are looked up at the first active InfiniBand port; not supported yet. */
static int ask_subnets(void)
{
	const struct device_list *list;
	struct ibv_port_attr attr;
	unsigned int num;
	int err = device_list_load();
	int i;

	if (err)
		return err;
	list = device_list();
	for (i = 0; i < list->n; i++)
		for (num = 1; num <= list->device[i]->n_ports; num++)
			if (!ibv_query_port(list->verbs[i], (uint8_t)num, &attr) &&
			    attr.state == IBV_PORT_ACTIVE &&
			    attr.link_layer == IBV_LINK_LAYER_INFINIBAND)
				return -EOPNOTSUPP;
	return -ENOENT;
}

int addrinfo_find_service(const char *node, const char *service, int flags)
{
	if (node || flags & RAI_DNS)
		return -EOPNOTSUPP;
	return service ? ask_subnets() : -EINVAL;
}
