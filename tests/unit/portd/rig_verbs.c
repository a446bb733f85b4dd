/* SPDX-License-Identifier: BSD-2-Clause */
/* The fake libibverbs of the rig: its one device, with the functions that cmportd calls. */
#include <endian.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/portd/rig.h"

static struct ibv_device device = { .name = RIG_DEVICE };
static uint64_t guid = RIG_GUID;
static struct ibv_context context = { .device = &device };
static int query_error; /* until it is opened again */

struct ibv_device **ibv_get_device_list(int *ret_n)
{
	struct ibv_device **list = calloc(2, sizeof(struct ibv_device *));

	if (!list)
		return NULL;
	list[0] = &device;
	if (ret_n)
		*ret_n = 1;
	return list;
}

void ibv_free_device_list(struct ibv_device **list)
{
	free(list);
}

const char *ibv_get_device_name(struct ibv_device *which)
{
	return which->name;
}

__be64 ibv_get_device_guid(struct ibv_device *which)
{
	(void)which;
	return htobe64(guid);
}

void rig_replace_device(const char *name, uint64_t new_guid)
{
	strncpy(device.name, name, sizeof(device.name) - 1);
	guid = new_guid;
}

void rig_fail_queries(int err)
{
	query_error = err;
}

struct ibv_context *ibv_open_device(struct ibv_device *which)
{
	(void)which;
	query_error = 0;
	return &context;
}

int ibv_close_device(struct ibv_context *which)
{
	(void)which;
	return 0;
}

int ibv_query_device(struct ibv_context *which, struct ibv_device_attr *ret)
{
	(void)which;
	if (query_error)
		return query_error;
	memset(ret, 0, sizeof(*ret));
	ret->node_guid = htobe64(guid);
	ret->phys_port_cnt = RIG_PORTS;
	return 0;
}

int ibv_query_gid(struct ibv_context *which, uint8_t port_num, int index, union ibv_gid *ret)
{
	(void)which;
	(void)index;
	memset(ret, 0, sizeof(*ret));
	ret->raw[15] = port_num;
	return 0;
}
