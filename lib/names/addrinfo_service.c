/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * RAI_SA: addresses by the name of a service, which the subnet administrator of an InfiniBand
 * subnet knows. See addrinfo.h.
 */
#include "lib/names/addrinfo.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "lib/device/device.h"

static bool is_on_subnet(struct ibv_context *verbs, uint8_t port_num)
{
	struct ibv_port_attr attr;

	return ibv_query_port(verbs, port_num, &attr) == 0 && attr.state == IBV_PORT_ACTIVE &&
	       attr.link_layer == IBV_LINK_LAYER_INFINIBAND;
}

/* Where service records are asked for: the first port that answers otherwise than -ENOENT ends the
 * search. InfiniBand subnets are not served yet. */
static int ask_port(struct device *device, uint8_t port_num)
{
	return is_on_subnet(device->verbs, port_num) ? -EOPNOTSUPP : -ENOENT;
}

static int ask_device(struct device *device)
{
	unsigned int port_num;
	int err = -ENOENT;

	for (port_num = 1; port_num <= device->n_ports && err == -ENOENT; port_num++)
		err = ask_port(device, (uint8_t)port_num);
	return err;
}

static int ask_subnets(void)
{
	const struct device_list *list;
	int err = device_list_load();
	int i;

	if (err)
		return err;
	list = device_list();
	err = -ENOENT;
	for (i = 0; i < list->n && err == -ENOENT; i++)
		err = ask_device(list->device[i]);
	return err;
}

int addrinfo_find_service(const char *node, const char *service, int flags)
{
	if (node || flags & RAI_DNS)
		return -EOPNOTSUPP;
	return service ? ask_subnets() : -EINVAL;
}
