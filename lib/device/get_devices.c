/* SPDX-License-Identifier: BSD-2-Clause */
/* The devices that programs see: rdma_get_devices(), rdma_free_devices(). */
#include <errno.h>
#include <rdma/rdma_cma.h>
#include <stdlib.h>

#include "lib/api.h"
#include "lib/device/device.h"

static int put_into_list(struct device *device, struct ibv_context **ret)
{
	struct ibv_pd *pd;
	int err = device_is_gone(device) ? -ENODEV : device_pd(device, &pd);

	if (err)
		return err;
	device_see(device);
	device_get(device);
	*ret = device->verbs;
	return 0;
}

/* A device whose protection domain cannot be made is omitted. */
static int make_list(struct ibv_context ***ret, int *ret_n)
{
	const struct device_list *list = device_list();
	struct ibv_context **verbs = calloc((size_t)list->n + 1, sizeof(*verbs));
	int i, n = 0, err, first = 0;

	if (!verbs)
		return -ENOMEM;
	for (i = 0; i < list->n; i++) {
		err = put_into_list(list->device[i], &verbs[n]);
		n += !err;
		first = first ? first : err;
	}
	if (!n) {
		free(verbs);
		return first ? first : -ENODEV;
	}
	*ret = verbs;
	*ret_n = n;
	return 0;
}

static int get_devices(struct ibv_context ***ret, int *ret_n)
{
	int err = device_list_refresh();

	if (err)
		return err;
	device_list_enter();
	err = make_list(ret, ret_n);
	device_list_leave();
	device_close_unused(true);
	return err;
}

struct ibv_context **rdma_get_devices(int *num_devices)
{
	struct ibv_context **list = NULL;
	int n = 0;
	int err = api_return(get_devices(&list, &n));

	if (num_devices)
		*num_devices = err ? 0 : n;
	return err ? NULL : list;
}

void rdma_free_devices(struct ibv_context **list)
{
	int i, cancel_state = api_enter();

	for (i = 0; list && list[i]; i++)
		device_put(device_of(list[i]));
	free(list);
	api_leave(cancel_state);
}
