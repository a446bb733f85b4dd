/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The list of devices, their shared resources, and their ports: see device.h. rdma_get_devices()
 * and rdma_free_devices(). The lock may be held across system calls; it is never taken with the
 * engine's lock held.
 */
#include "lib/device/device.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <rdma/rdma_cma.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/command.h"
#include "lib/api.h"
#include "lib/diag/lock_order.h"
#include "lib/device/device_sysfs.h"
#include "lib/device/port_info.h"
#include "lib/diag/warning.h"
#include "lib/engine/host.h"
#include "lib/engine/link.h"

#define N_DESCRIPTORS 4 /* that libibverbs opens at once while it loads drivers */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/*
 * Both are read without the lock. Nothing reachable from them is ever freed: programs keep
 * contexts, and threads may still read an old list.
 */
static const struct device_list nothing;
static const struct device_list *devices = &nothing; /* atomic: the open devices */
static struct device *known; /* atomic: all devices ever opened, latest first */

static bool has_opened_all; /* none lacked memory or descriptors */
static bool is_present;	    /* atomic: there was a device when last looked */

/*
 * The interfaces and GIDs for which devices have been opened, by a number of each. Two that share a
 * place displace each other, and are looked for again.
 */
#define LOOKED_FOR_MAX 64
static uint32_t looked_for[LOOKED_FOR_MAX]; /* atomic */

/* --- the list ------------------------------------------------------------ */

const struct device_list *device_list(void)
{
	return __atomic_load_n(&devices, __ATOMIC_ACQUIRE);
}

/* libibverbs has a new object for a renamed device; the node name stays the same. */
static bool is_same(const struct ibv_device *a, const struct ibv_device *b)
{
	return a == b || (!strcmp(a->dev_name, b->dev_name) && strcmp(a->name, b->name) != 0);
}

static struct device *find_listed(const struct ibv_device *device)
{
	int i;

	for (i = 0; i < devices->n; i++)
		if (!devices->device[i]->removed && is_same(devices->verbs[i]->device, device))
			return devices->device[i];
	return NULL;
}

static void insert_by_place(struct device_list *list, struct device *device)
{
	int i = list->n++;

	for (; i > 0 && list->device[i - 1]->place > device->place; i--) {
		list->device[i] = list->device[i - 1];
		list->verbs[i] = list->verbs[i - 1];
	}
	list->device[i] = device;
	list->verbs[i] = device->verbs;
}

/* Publishes a new list without removed devices, and with a new one or NULL. */
static int renew_list(struct device *with)
{
	size_t n_max = (size_t)devices->n + 1;
	struct device_list *list = calloc(1, sizeof(*list) + n_max * 2 * sizeof(void *));
	int i;

	if (!list)
		return -ENOMEM;
	list->device = (struct device **)(list + 1);
	list->verbs = (struct ibv_context **)(list->device + n_max);
	for (i = 0; i <= devices->n; i++) {
		struct device *device = i < devices->n ? devices->device[i] : with;

		if (device && !device->removed)
			insert_by_place(list, device);
	}
	list->before = devices;
	__atomic_store_n(&devices, list, __ATOMIC_RELEASE);
	return 0;
}

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
	err = renew_list(device);
	if (err)
		return err;
	device->known = known;
	__atomic_store_n(&known, device, __ATOMIC_RELEASE);
	return 0;
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
	if (device && device->verbs)
		ibv_close_device(device->verbs);
	if (device) {
		free(device->port);
		free(device->cache);
	}
	free(device);
	return err;
}

/*
 * libibverbs loads its drivers once per process: without descriptors it would find none, and never
 * retry. So it is called only when a few are available.
 */
static int check_descriptors(void)
{
	int fd[N_DESCRIPTORS];
	int i, n, err = 0;

	for (n = 0; n < N_DESCRIPTORS && !err; n++) {
		fd[n] = open("/dev/null", O_RDONLY | O_CLOEXEC);
		if (fd[n] < 0 && (errno == EMFILE || errno == ENFILE))
			err = -errno;
	}
	for (i = 0; i < n; i++)
		if (fd[i] >= 0)
			close(fd[i]);
	return err;
}

/*
 * Lists the devices of the system, open or not.
 *
 * Return: their number, the list to be freed with ibv_free_device_list(); 0 with *ret NULL if there
 * is no RDMA module; -errno.
 */
static int list_devices(struct ibv_device ***ret)
{
	int err = check_descriptors();
	int n = 0;

	if (err)
		return err;
	*ret = ibv_get_device_list(&n);
	if (!*ret) /* ENOSYS without any RDMA module */
		return errno == ENOMEM ? -ENOMEM : 0;
	__atomic_store_n(&is_present, n > 0, __ATOMIC_RELEASE);
	return n;
}

/* The devices that are open keep their places in the system's list. */
static void renew_places(struct ibv_device *const *list)
{
	struct device *device;
	int i;

	for (i = 0; list[i]; i++) {
		device = find_listed(list[i]);
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
		err = find_listed(list[i]) ? 0 : open_device(list[i], i);
		*ret_err = *ret_err ? *ret_err : err;
	}
	return n_chosen;
}

/* Return: 0, or the first error of opening a device. */
static int open_devices(const struct device_want *want)
{
	struct choice choice = { want, DEVICE_GIDS_OF_PORT };
	struct ibv_device **list;
	int n = list_devices(&list);
	int err = 0;

	if (n < 0 || !list)
		return n;
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

int device_count(void)
{
	const struct device_list *list = device_list();
	int i, n = 0;

	for (i = 0; i < list->n; i++)
		n += !device_is_gone(list->device[i]);
	return n;
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
	lock_take(&lock, LOCK_DEVICES);
	if (again || !has_opened_all || device_count() == 0) {
		err = open_devices(NULL);
		has_opened_all = err != -ENOMEM && err != -EMFILE && err != -ENFILE;
	}
	if (device_count())
		err = 0;
	else if (!err)
		err = -ENODEV;
	lock_give(&lock, LOCK_DEVICES);
	return err;
}

int device_list_check(void)
{
	struct ibv_device **list = NULL;
	int n;

	if (__atomic_load_n(&is_present, __ATOMIC_ACQUIRE))
		return 0;
	lock_take(&lock, LOCK_DEVICES);
	n = list_devices(&list);
	if (list)
		ibv_free_device_list(list);
	lock_give(&lock, LOCK_DEVICES);
	if (n < 0)
		return n;
	return n ? 0 : -ENODEV;
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
	lock_take(&lock, LOCK_DEVICES);
	if (!has_opened_all)
		err = open_devices(want);
	if (!err)
		__atomic_store_n(&looked_for[number % LOOKED_FOR_MAX], number, __ATOMIC_RELEASE);
	lock_give(&lock, LOCK_DEVICES);
}

struct device *device_of(const struct ibv_context *verbs)
{
	const struct device_list *list = device_list();
	struct device *device;
	int i;

	if (!verbs)
		return NULL;
	for (i = 0; i < list->n; i++)
		if (list->verbs[i] == verbs)
			return list->device[i];
	device = __atomic_load_n(&known, __ATOMIC_ACQUIRE);
	while (device && device->verbs != verbs)
		device = device->known;
	return device;
}

unsigned int device_events(const struct device *device)
{
	int handle = __atomic_load_n(&device->handle, __ATOMIC_ACQUIRE);
	unsigned int n_events = handle < 0 ? 0 : link_events(handle);

	return n_events ? n_events * PORTD_PORTS_MAX + (unsigned int)handle + 1 : 0;
}

struct device *device_of_node(const char *name)
{
	const struct device_list *list = device_list();
	int i;

	for (i = 0; i < list->n; i++)
		if (!device_is_gone(list->device[i]) &&
		    !strcmp(list->verbs[i]->device->dev_name, name))
			return list->device[i];
	return NULL;
}

bool device_gone(struct device *device)
{
	bool is_news;

	lock_take(&lock, LOCK_DEVICES);
	is_news = !device->removed;
	__atomic_store_n(&device->removed, true, __ATOMIC_RELEASE);
	/* Without memory it stays in the old list, marked as removed. */
	if (is_news)
		renew_list(NULL);
	has_opened_all = false; /* it may return */
	memset(looked_for, 0, sizeof(looked_for));
	__atomic_store_n(&is_present, device_count() > 0, __ATOMIC_RELEASE);
	lock_give(&lock, LOCK_DEVICES);
	gid_forget(device->verbs);
	return is_news;
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
	lock_take(&lock, LOCK_DEVICES);
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
	lock_give(&lock, LOCK_DEVICES);
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

	lock_take(&lock, LOCK_DEVICES);
	if (!device->xrcd) {
		command_check();
		errno = 0;
		device->xrcd = ibv_open_xrcd(device->verbs, &attr);
		if (!device->xrcd)
			err = errno ? -errno : -ENOMEM;
	}
	if (!err)
		*ret = device->xrcd;
	lock_give(&lock, LOCK_DEVICES);
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
	port_info(device, port_num, &info);
	port->device = device;
	port->port_num = port_num;
	port->needs_grh = info.needs_grh;
	port->is_infiniband = info.is_infiniband;
	port->refs = 1;
	port->handle = -1;
	port->shown_handle = &device->handle;
	err = host_open_port(port);
	if (err)
		port_put(port);
	else
		*ret = port;
	return err;
}

int device_port_open(struct device *device, uint8_t port_num, struct port **ret)
{
	struct port **slot;
	int err = host_start();

	if (err)
		return err;
	lock_take(&lock, LOCK_DEVICES);
	if (device->removed || port_num == 0 || port_num > device->n_ports) {
		lock_give(&lock, LOCK_DEVICES);
		return -ENODEV;
	}
	slot = &device->port[port_num - 1];
	if (!*slot)
		err = open_port(device, port_num, slot);
	if (!err)
		*ret = port_get(*slot);
	lock_give(&lock, LOCK_DEVICES);
	return err;
}

int device_open_all_ports(void)
{
	int i, err, first = device_list_load();
	const struct device_list *list = device_list();
	struct port *port;
	bool any = false;
	uint8_t num;

	for (i = 0; i < list->n; i++) {
		for (num = 1; num <= list->device[i]->n_ports; num++) {
			err = device_port_open(list->device[i], num, &port);
			if (!err)
				port_put(port);
			any = any || !err;
			first = first ? first : err;
		}
	}
	return any ? 0 : first;
}

void device_port_gone(struct port *port)
{
	bool is_open;

	lock_take(&lock, LOCK_DEVICES);
	is_open = port->device->port[port->port_num - 1] == port;
	if (is_open)
		port->device->port[port->port_num - 1] = NULL;
	lock_give(&lock, LOCK_DEVICES);
	host_close_port(port);
	if (is_open)
		port_put(port);
}

void device_after_fork(void)
{
	struct device *device;

	pthread_mutex_init(&lock, NULL);
	port_info_after_fork();
	for (device = known; device; device = device->known) {
		memset(device->port, 0, device->n_ports * sizeof(struct port *));
		device->handle = -1;
	}
}

/* --- the API ------------------------------------------------------------- */

static int get_devices(struct ibv_context ***ret, int *ret_n)
{
	const struct device_list *list;
	struct ibv_context **verbs;
	struct ibv_pd *pd;
	int err = device_list_refresh();
	int i;

	if (err)
		return err;
	list = device_list();
	verbs = calloc((size_t)list->n + 1, sizeof(*verbs));
	if (!verbs)
		return -ENOMEM;
	for (i = 0, *ret_n = 0; !err && i < list->n; i++) {
		if (device_is_gone(list->device[i]))
			continue;
		err = device_pd(list->device[i], &pd);
		if (!err)
			verbs[(*ret_n)++] = list->verbs[i];
	}
	if (err) {
		rdma_free_devices(verbs);
		return err;
	}
	*ret = verbs;
	return 0;
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
	free(list);
}
