/* SPDX-License-Identifier: BSD-2-Clause */
/* Opens and closes devices, their shared resources, and their ports: see device.h. */
#include "lib/device/device.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/command.h"
#include "base/fd.h"
#include "lib/device/device_list.h"
#include "lib/device/device_sysfs.h"
#include "lib/device/port_info.h"
#include "lib/diag/warning.h"
#include "lib/engine/cmportd.h"
#include "lib/engine/session.h"

static void (*gone_fn)(struct device *device); /* atomic; NULL: removals are not reported */
static bool has_opened_all;		       /* without an error; under the list's lock */
static bool is_present;			       /* atomic: there was a device when last looked */

/*
 * The interfaces and GIDs for which devices have been opened, by a number of each. Two that share a
 * place displace each other, and are looked for again.
 */
#define LOOKED_FOR_MAX 64
static uint32_t looked_for[LOOKED_FOR_MAX]; /* atomic */

/* --- opening and closing ------------------------------------------------- */

/* Constants that headers before rdma-core 46 lack: IBA volume 1, A19 (memory placement). */
#define DEVICE_FLUSH_GLOBAL	(1ULL << 38)
#define DEVICE_FLUSH_PERSISTENT (1ULL << 39)
#define ACCESS_FLUSH_GLOBAL	(1U << 8)
#define ACCESS_FLUSH_PERSISTENT (1U << 9)

/* Kernels with FLUSH (6.2 and later) report it here, and grant it to peers that may read. */
static int query_device(struct device *device)
{
	struct ibv_device_attr_ex attr;
	int err;

	command_check();
	err = ibv_query_device_ex(device->verbs, NULL, &attr);
	if (err)
		return -err;
	device->attr = attr.orig_attr;
	if (attr.device_cap_flags_ex & DEVICE_FLUSH_GLOBAL)
		device->flush_access |= ACCESS_FLUSH_GLOBAL;
	if (attr.device_cap_flags_ex & DEVICE_FLUSH_PERSISTENT)
		device->flush_access |= ACCESS_FLUSH_PERSISTENT;
	return 0;
}

/* Opens a device and adds it to the list. */
static int fill_device(struct device *device, struct ibv_device *from)
{
	int err;

	command_check();
	errno = 0;
	device->verbs = ibv_open_device(from);
	if (!device->verbs)
		return errno ? -errno : -ENODEV;
	err = query_device(device);
	if (err)
		return err;
	device->n_ports = device->attr.phys_port_cnt;
	device->port = calloc(device->n_ports, sizeof(struct port *));
	device->handle = -1;
	device->cache = port_cache_new(device->n_ports);
	if (!device->port || !device->cache)
		return -ENOMEM;
	return device_list_add(device);
}

static void close_device(struct device *device)
{
	command_check();
	if (device->xrcd)
		ibv_close_xrcd(device->xrcd);
	if (device->pd)
		ibv_dealloc_pd(device->pd);
	if (device->verbs) {
		gid_forget(device->verbs);
		ibv_close_device(device->verbs);
	}
	port_cache_free(device->cache, device->n_ports);
	free(device->port);
	free(device);
}

void device_close_unused(bool seen_too)
{
	struct device *device;

	while ((device = device_list_take_unused(seen_too)))
		close_device(device);
}

static int open_device(struct ibv_device *from, int place)
{
	struct device *device = calloc(1, sizeof(*device));
	int err = -ENOMEM;

	if (device) {
		device->place = place;
		err = fill_device(device, from);
	}
	if (!err)
		return 0;
	warning_of_device(ibv_get_device_name(from), err);
	if (device)
		close_device(device);
	return err;
}

/* --- the system's list ---------------------------------------------------- */

/*
 * Lists the devices of the system, open or not.
 *
 * Return: their number, the list to be freed with ibv_free_device_list(); 0 with *ret NULL if there
 * is no RDMA module; -errno.
 */
static int list_devices(struct ibv_device ***ret)
{
	int err = fd_check_for_verbs();
	int n = 0;

	if (err)
		return err;
	*ret = ibv_get_device_list(&n);
	if (!*ret) /* ENOSYS without any RDMA module */
		return errno == ENOMEM ? -ENOMEM : 0;
	__atomic_store_n(&is_present, n > 0, __ATOMIC_RELEASE);
	return n;
}

/* The caller holds the lock of the list. */
static void drop_device(struct device *device)
{
	device_list_drop(device);
	has_opened_all = false; /* it may return */
	memset(looked_for, 0, sizeof(looked_for));
	__atomic_store_n(&is_present, device_count() > 0, __ATOMIC_RELEASE);
	gid_forget(device->verbs);
}

static void report_gone(void)
{
	void (*gone)(struct device * device) = __atomic_load_n(&gone_fn, __ATOMIC_ACQUIRE);
	struct device *device;

	while ((device = device_list_next_unreported())) {
		if (gone)
			gone(device);
		device_put(device);
	}
}

bool device_gone(struct device *device)
{
	bool is_news;

	device_list_lock();
	is_news = !device->removed;
	if (is_news)
		drop_device(device);
	device_list_unlock();
	report_gone();
	return is_news;
}

void device_set_gone(void (*gone)(struct device *device))
{
	__atomic_store_n(&gone_fn, gone, __ATOMIC_RELEASE);
}

static bool is_in(struct ibv_device *const *list, const struct ibv_device *device)
{
	while (*list && *list != device)
		list++;
	return *list;
}

bool device_answers(const struct device *device)
{
	struct ibv_port_attr attr;
	int err;

	command_check();
	err = ibv_query_port(device->verbs, 1, &attr);
	return err != EIO && err != ENODEV; /* others may pass: memory, a signal */
}

/* A removed device may be announced nowhere, and a process may no longer see a device that works.
 */
static void drop_missing(struct ibv_device *const *list)
{
	const struct device_list *open = device_list();
	int i;

	for (i = 0; i < open->n; i++)
		if (!open->device[i]->removed && !is_in(list, open->verbs[i]->device) &&
		    !device_answers(open->device[i]))
			drop_device(open->device[i]);
}

static void look_for_missing(void)
{
	struct ibv_device **list = NULL;

	if (list_devices(&list) < 0 || !list)
		return;
	drop_missing(list);
	ibv_free_device_list(list);
}

/* The devices that are open keep their places in the system's list. */
static void renew_places(struct ibv_device *const *list)
{
	struct device *device;
	int i;

	for (i = 0; list[i]; i++) {
		device = device_list_find(list[i]);
		if (device)
			device->place = i;
	}
}

/* Which devices to open: those that are in part of a GID table of theirs; all if @want is NULL. */
struct choice {
	const struct device_want *want;
	enum device_gids which;
};

/* Return: the number of devices that were chosen, open or not. */
static int open_chosen(struct ibv_device *const *list, const struct choice *choice, int *ret_err)
{
	int i, err, n_chosen = 0;

	for (i = 0; list[i]; i++) {
		if (choice->want && !device_sysfs_has(list[i], choice->want, choice->which))
			continue;
		n_chosen++;
		err = device_list_find(list[i]) ? 0 : open_device(list[i], i);
		*ret_err = *ret_err ? *ret_err : err;
	}
	return n_chosen;
}

/* Return: 0, or the first error of opening a device. */
static int open_devices(const struct device_want *want)
{
	struct choice choice = { want, DEVICE_GIDS_OF_PORT };
	static struct ibv_device *const none[1];
	struct ibv_device **list;
	int n = list_devices(&list);
	int err = 0;

	if (n < 0)
		return n;
	drop_missing(list ? list : none);
	if (!list)
		return 0;
	renew_places(list);
	if (n == 1)
		choice.want = NULL;
	if (!open_chosen(list, &choice, &err) && choice.want) {
		choice.which = DEVICE_GIDS_FURTHER;
		open_chosen(list, &choice, &err);
	}
	ibv_free_device_list(list);
	return err;
}

static unsigned int count_events(const struct ibv_context *verbs)
{
	const struct device *device = device_of(verbs);

	return device ? device_events(device) : 0;
}

static int open_all(bool again)
{
	int err = 0;

	gid_set_events(count_events);
	device_list_lock();
	if (again || !has_opened_all || device_count() == 0) {
		err = open_devices(NULL);
		has_opened_all = !err;
	}
	if (device_count())
		err = 0;
	else if (!err)
		err = -ENODEV;
	device_list_unlock();
	report_gone();
	return err;
}

int device_list_check(void)
{
	struct ibv_device **list = NULL;
	int n;

	if (__atomic_load_n(&is_present, __ATOMIC_ACQUIRE))
		return 0;
	device_list_lock();
	n = list_devices(&list);
	if (list)
		ibv_free_device_list(list);
	device_list_unlock();
	if (n == 0)
		warning_of_no_device();
	return n < 0 ? n : n ? 0 : -ENODEV;
}

int device_list_load(void)
{
	return open_all(false);
}

int device_list_refresh(void)
{
	return open_all(true);
}

bool device_list_has_looked_for(uint32_t number)
{
	return __atomic_load_n(&looked_for[number % LOOKED_FOR_MAX], __ATOMIC_ACQUIRE) == number;
}

void device_list_look_for(const struct device_want *want, uint32_t number)
{
	int err = 0;

	gid_set_events(count_events);
	device_list_lock();
	if (!has_opened_all)
		err = open_devices(want);
	if (!err)
		__atomic_store_n(&looked_for[number % LOOKED_FOR_MAX], number, __ATOMIC_RELEASE);
	device_list_unlock();
	report_gone();
}

unsigned int device_events(const struct device *device)
{
	int handle = __atomic_load_n(&device->handle, __ATOMIC_ACQUIRE);
	unsigned int n_events = handle < 0 ? 0 : session_events(handle);

	return n_events ? n_events * PORTD_PORTS_MAX + (unsigned int)handle + 1 : 0;
}

/* --- shared by the ids of a device ---------------------------------------- */

/* Kept like the context: creating one for each connection would cost two system calls. */
int device_pd(struct device *device, struct ibv_pd **ret)
{
	struct ibv_pd *pd = __atomic_load_n(&device->pd, __ATOMIC_ACQUIRE);
	int err = 0;

	if (pd) {
		*ret = pd;
		return 0;
	}
	device_list_lock();
	if (!device->pd) {
		command_check();
		errno = 0;
		pd = ibv_alloc_pd(device->verbs);
		if (!pd)
			err = errno ? -errno : -ENOMEM;
		__atomic_store_n(&device->pd, pd, __ATOMIC_RELEASE);
	}
	if (!err)
		*ret = device->pd;
	device_list_unlock();
	return err;
}

int device_xrcd(struct device *device, struct ibv_xrcd **ret)
{
	struct ibv_xrcd_init_attr attr = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
		.fd = -1,
		.oflags = O_CREAT,
	};
	int err = 0;

	device_list_lock();
	if (!device->xrcd) {
		command_check();
		errno = 0;
		device->xrcd = ibv_open_xrcd(device->verbs, &attr);
		if (!device->xrcd)
			err = errno ? -errno : -ENOMEM;
	}
	if (!err)
		*ret = device->xrcd;
	device_list_unlock();
	return err;
}

/* --- ports --------------------------------------------------------------- */

static int open_port(struct device *device, uint8_t port_num, struct port **ret)
{
	struct port *port = calloc(1, sizeof(*port));
	struct port_info info = { .state = IBV_PORT_NOP };
	int err;

	if (!port)
		return -ENOMEM;
	/*
	 * If the device is gone, before or meanwhile, cmportd opens the port of another one that
	 * has its name now, and will not report that this one is gone.
	 */
	if (port_info(device, port_num, &info)) {
		free(port);
		return -ENODEV;
	}
	port->device = device;
	port->port_num = port_num;
	port->needs_grh = info.needs_grh;
	port->is_infiniband = info.is_infiniband;
	port->refs = 1;
	port->handle = -1;
	port->shown_handle = &device->handle;
	port->users = &device->users;
	device_get(device);
	err = cmportd_open_port(port);
	if (!err && !device_answers(device)) {
		cmportd_close_port(port);
		err = -ENODEV;
	}
	if (err)
		port_put(port);
	else
		*ret = port;
	return err;
}

/* Without a node for umad, or no device for cmportd: the device, or cmportd, is coming or going. */
static bool is_unsettled(const struct device *device, int err)
{
	return err == -ENXIO || err == -ENODEV || err == -EPIPE || !device_answers(device);
}

static int try_port(struct device *device, uint8_t port_num, struct port **ret)
{
	struct port **slot;
	int err;

	device_list_lock();
	if (device->removed || port_num == 0 || port_num > device->n_ports) {
		device_list_unlock();
		return -ENODEV;
	}
	slot = &device->port[port_num - 1];
	err = *slot ? cmportd_reopen_port(*slot) : open_port(device, port_num, slot);
	if (!err)
		*ret = port_get(*slot);
	else if (is_unsettled(device, err))
		device_mark_unsettled(device);
	device_list_unlock();
	return err;
}

int device_port_open(struct device *device, uint8_t port_num, struct port **ret)
{
	int err = cmportd_start();

	if (!err)
		err = try_port(device, port_num, ret);
	/* The thread that resumes needs the lock of the devices. */
	while (err == -EPIPE) {
		err = cmportd_await();
		if (err)
			break;
		err = try_port(device, port_num, ret);
	}
	return err;
}

/* Return: 0, or -errno of the first port that cannot be opened; *ret_any is set if one can be. */
static int open_ports(struct device *device, bool *ret_any)
{
	struct port *port;
	int err, first = 0;
	uint8_t num;

	for (num = 1; num <= device->n_ports; num++) {
		err = device_port_open(device, num, &port);
		if (!err)
			port_put(port);
		*ret_any = *ret_any || !err;
		first = first ? first : err;
	}
	return first;
}

int device_open_all_ports(void)
{
	int i, err, first = device_list_refresh();
	const struct device_list *list;
	bool any = false;

	device_list_enter();
	list = device_list();
	for (i = 0; i < list->n; i++) {
		err = open_ports(list->device[i], &any);
		first = first ? first : err;
	}
	device_list_leave();
	return any ? 0 : first;
}

bool device_lacks_port(void)
{
	const struct device_list *list;
	bool lacks = false;
	int i;

	device_list_enter();
	list = device_list();
	for (i = 0; i < list->n; i++)
		lacks = lacks || (!device_is_gone(list->device[i]) &&
				  __atomic_load_n(&list->device[i]->lacks_port, __ATOMIC_RELAXED));
	device_list_leave();
	return lacks;
}

void device_settle(void)
{
	const struct device_list *list;
	struct device *device;
	bool any = false;
	int i;

	device_list_lock();
	look_for_missing();
	device_list_unlock();
	report_gone();
	device_list_enter();
	list = device_list();
	for (i = 0; i < list->n; i++) {
		device = list->device[i];
		if (__atomic_exchange_n(&device->lacks_port, false, __ATOMIC_RELAXED))
			open_ports(device, &any);
	}
	device_list_leave();
}

struct port *device_take_port(struct device *device)
{
	struct port *port = NULL;
	int i;

	device_list_lock();
	for (i = 0; i < device->n_ports && !port; i++) {
		port = device->port[i];
		device->port[i] = NULL;
	}
	device_list_unlock();
	return port;
}

static void drop_ports(struct device *device)
{
	memset(device->port, 0, device->n_ports * sizeof(struct port *));
	device->handle = -1;
}

void device_after_fork(void)
{
	port_info_after_fork();
	device_list_walk(drop_ports);
}
