/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The list of open devices: see device_list.h and device.h.
 *
 * Readers take no lock. They see an immutable snapshot, and are counted: a device that was removed
 * from the list, and an old snapshot, are freed only when no reader can have a pointer to them.
 */
#include "lib/device/device_list.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "lib/diag/lock_order.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static struct device_list nothing;
static struct device_list *devices = &nothing; /* atomic: the open devices */
static struct device *known;	/* atomic, as are its links: those, and removed ones in use */
static struct device *unlinked; /* removed and unused; a reader may still have found them */
static unsigned int n_readers;	/* atomic */
static unsigned int n_removed;	/* atomic: devices, until they are freed */

/* --- readers --------------------------------------------------------------- */

void device_list_enter(void)
{
	__atomic_add_fetch(&n_readers, 1, __ATOMIC_ACQ_REL);
}

void device_list_leave(void)
{
	__atomic_sub_fetch(&n_readers, 1, __ATOMIC_ACQ_REL);
}

/*
 * A write, so that a reader that is counted later sees all that this thread wrote before.
 * Return: true if no reader has a pointer to what is no longer listed.
 */
static bool has_no_readers(void)
{
	return __atomic_fetch_add(&n_readers, 0, __ATOMIC_ACQ_REL) == 0;
}

const struct device_list *device_list(void)
{
	return __atomic_load_n(&devices, __ATOMIC_ACQUIRE);
}

int device_count(void)
{
	const struct device_list *list;
	int i, n = 0;

	device_list_enter();
	list = device_list();
	for (i = 0; i < list->n; i++)
		n += !device_is_gone(list->device[i]);
	device_list_leave();
	return n;
}

static struct device *find_listed(const struct ibv_context *verbs)
{
	const struct device_list *list = device_list();
	int i;

	for (i = 0; i < list->n; i++)
		if (list->verbs[i] == verbs)
			return list->device[i];
	return NULL;
}

static struct device *find_known(const struct ibv_context *verbs)
{
	struct device *device = __atomic_load_n(&known, __ATOMIC_ACQUIRE);

	while (device && device->verbs != verbs)
		device = __atomic_load_n(&device->known, __ATOMIC_ACQUIRE);
	return device;
}

struct device *device_of(const struct ibv_context *verbs)
{
	struct device *device;

	if (!verbs)
		return NULL;
	device_list_enter();
	device = find_listed(verbs);
	if (!device)
		device = find_known(verbs);
	device_list_leave();
	return device;
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

/* --- changes --------------------------------------------------------------- */

/* In a forked child: nobody looks at devices, and the lock is free. */
static void after_fork(void)
{
	pthread_mutex_init(&lock, NULL);
	n_readers = 0;
}

static void watch_forks(void)
{
	pthread_atfork(NULL, NULL, after_fork);
}

/* A program may fork before it has an id, and so before the engine's handler is registered. */
void device_list_lock(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, watch_forks);
	lock_take(&lock, LOCK_DEVICES);
}

void device_list_unlock(void)
{
	lock_give(&lock, LOCK_DEVICES);
}

/* libibverbs has a new object for a renamed device; the node name stays the same. */
static bool is_same(const struct ibv_device *a, const struct ibv_device *b)
{
	return a == b || (!strcmp(a->dev_name, b->dev_name) && strcmp(a->name, b->name) != 0);
}

struct device *device_list_find(const struct ibv_device *ibv)
{
	int i;

	for (i = 0; i < devices->n; i++)
		if (!devices->device[i]->removed && is_same(devices->verbs[i]->device, ibv))
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

int device_list_add(struct device *device)
{
	int err = renew_list(device);

	if (err)
		return err;
	device->known = known;
	__atomic_store_n(&known, device, __ATOMIC_RELEASE);
	return 0;
}

void device_list_drop(struct device *device)
{
	__atomic_store_n(&device->removed, true, __ATOMIC_RELEASE);
	__atomic_add_fetch(&n_removed, 1, __ATOMIC_RELEASE);
	/* Without memory it stays in the old list, marked as removed. */
	renew_list(NULL);
}

struct device *device_list_next_unreported(void)
{
	struct device *device;

	if (!__atomic_load_n(&n_removed, __ATOMIC_ACQUIRE))
		return NULL;
	device_list_lock();
	for (device = known; device; device = device->known)
		if (device->removed && !device->is_reported)
			break;
	if (device) {
		device->is_reported = true;
		device_get(device);
	}
	device_list_unlock();
	return device;
}

void device_list_walk(void (*visit)(struct device *device))
{
	struct device *device;

	for (device = known; device; device = device->known)
		visit(device);
}

/* --- the end of devices ------------------------------------------------------ */

static bool is_listed(const struct device *device)
{
	return find_listed(device->verbs) == device;
}

static bool is_unused(const struct device *device, bool seen_too)
{
	return device->removed && device->is_reported && !is_listed(device) &&
	       !__atomic_load_n(&device->users, __ATOMIC_ACQUIRE) &&
	       (seen_too || !__atomic_load_n(&device->is_seen, __ATOMIC_RELAXED));
}

/* A program that is in a call does not use them any more: the reader's thread may close them. */
static void leave_to_reader(void)
{
	struct device *device;

	for (device = known; device; device = device->known)
		if (is_unused(device, true))
			__atomic_store_n(&device->is_seen, false, __ATOMIC_RELAXED);
}

/* From now on no reader finds them. Without users and readers, they cannot get any. */
static void unlink_unused(bool seen_too)
{
	struct device **at = &known, *device;

	while ((device = *at)) {
		if (!is_unused(device, seen_too)) {
			at = &device->known;
			continue;
		}
		__atomic_store_n(at, device->known, __ATOMIC_RELEASE);
		device->next_unlinked = unlinked;
		unlinked = device;
	}
}

static void free_old_lists(void)
{
	struct device_list *list, *before;

	for (list = devices->before; list && list != &nothing; list = before) {
		before = list->before;
		free(list);
	}
	devices->before = NULL;
}

struct device *device_list_take_unused(bool seen_too)
{
	struct device *device = NULL;

	if (!__atomic_load_n(&n_removed, __ATOMIC_ACQUIRE))
		return NULL;
	device_list_lock();
	if (has_no_readers())
		unlink_unused(seen_too);
	else if (seen_too)
		leave_to_reader();
	/* A reader may have come meanwhile, and be at one of them. */
	if (unlinked && has_no_readers()) {
		free_old_lists();
		device = unlinked;
		unlinked = device->next_unlinked;
		__atomic_sub_fetch(&n_removed, 1, __ATOMIC_RELEASE);
	}
	device_list_unlock();
	return device;
}
