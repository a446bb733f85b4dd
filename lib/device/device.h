/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * RDMA devices of the process. Each has one ibv_context, opened when an address of the device is
 * first looked up, or all devices are needed; a default protection domain and an XRC domain,
 * created when first needed; and the ports whose CM messages cmportd delivers to us. All of them
 * stay until the device is removed, because programs compare and keep the pointers.
 *
 * A removed device is closed once it has no users: ids, ports, lists of rdma_get_devices(). If the
 * program has seen it, its next call that looks at devices closes it, as with stock, and not the
 * call that ends the last use: programs destroy an id first, and then their own objects.
 *
 * Stock frees a default protection domain with the last id. Only `rdma resource` shows the
 * difference, and a connection needs two system calls less.
 */
#ifndef LIB_DEVICE_DEVICE_H
#define LIB_DEVICE_DEVICE_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

#include "cm/conn.h"
#include "lib/engine/served_port.h"
#include "lib/net/gid_table.h"

struct device {
	struct ibv_context *verbs;
	struct ibv_device_attr attr;
	unsigned int flush_access; /* IBV_ACCESS_* that a peer's FLUSH needs, if supported */
	struct ibv_pd *pd;	   /* the default one; NULL until needed */
	struct ibv_xrcd *xrcd;	   /* for queue pairs created without one; NULL until needed */
	struct port **port;	   /* by port number - 1; NULL if not open */
	struct port_cache *cache;  /* likewise, see port_info.h */
	int handle;		   /* atomic: cmportd's, of the port opened last; -1: none */
	uint8_t n_ports;
	int place;	    /* in the system's list of devices; under the list's lock */
	bool removed;	    /* written under the list's lock */
	bool is_reported;   /* device_set_gone()'s function was called; under the list's lock */
	bool is_seen;	    /* atomic: the program has had its context */
	bool lacks_port;    /* atomic: one may not be open; see device_settle() */
	unsigned int users; /* atomic */
	struct device *known, *next_unlinked; /* links of device_list.c */
};

/* A snapshot of the devices, immutable: readers hold no lock. */
struct device_list {
	int n;
	struct device **device;
	struct ibv_context **verbs; /* contexts of the devices */
	struct device_list *before;
};

/**
 * device_list_enter() - begin to look at devices: none that this thread finds is closed before
 * device_list_leave(). Nests. Any lock.
 */
void device_list_enter(void);
void device_list_leave(void);

/** device_get() - a new user of a device: it is not closed before device_put(). Any lock. */
static inline void device_get(struct device *device)
{
	__atomic_add_fetch(&device->users, 1, __ATOMIC_RELAXED);
}

/** device_put() - end of a use; NULL is allowed. Any lock. */
static inline void device_put(struct device *device)
{
	if (device)
		__atomic_sub_fetch(&device->users, 1, __ATOMIC_ACQ_REL);
}

/** device_see() - the program gets the context of a device */
static inline void device_see(struct device *device)
{
	__atomic_store_n(&device->is_seen, true, __ATOMIC_RELAXED);
}

/**
 * device_close_unused() - close removed devices without users, or, if a thread looks at devices,
 * leave them to its own call of this; no lock is held
 * @seen_too: those that the program has seen, too: in its own calls only
 */
void device_close_unused(bool seen_too);

/**
 * device_list_check() - find out whether there are devices, without opening any; cheap once found
 *
 * Return: 0, even if they cannot be opened; -ENODEV; -ENOMEM, -EMFILE, -ENFILE.
 */
int device_list_check(void);

/**
 * device_list_load() - open all devices of the system, once
 *
 * Return: 0; -ENODEV if there is none; -errno if none can be opened.
 */
int device_list_load(void);

/** device_list_refresh() - open all devices, also new ones. Return: as device_list_load(). */
int device_list_refresh(void);

/** device_count() - number of open devices; opens none. */
int device_count(void);

/**
 * device_list() - the open devices, in the system's order; some may have been removed, see
 * device_is_gone(). After device_list_enter().
 */
const struct device_list *device_list(void);

/** device_of() - the device with this context, even if removed; or NULL. It is not closed yet. */
struct device *device_of(const struct ibv_context *verbs);

/**
 * device_of_node() - the listed device with this node, such as "uverbs0", or NULL. After
 * device_list_enter().
 */
struct device *device_of_node(const char *name);

/**
 * device_find_gid() - find device, port and GID index of a local address; after
 * device_list_enter(), as are the functions below that find a GID
 * @addr: of IP, or AF_IB
 * @ifindex: interface of the address; 0 for AF_IB
 *
 * Opens the devices that sysfs shows with the interface; all if none of them has the address.
 *
 * Return: 0; -ENODEV; -errno if no device can be opened.
 */
int device_find_gid(const union addr *addr, unsigned int ifindex, struct gid_entry *ret);

/**
 * device_find_path_to() - find the InfiniBand port that reaches an AF_IB destination
 * @dst: its GID and P_Key
 * @ret: GID index 0 of the port with that GID, or of the first active one on its subnet
 *
 * Opens all devices.
 *
 * Return: 0; -ENODEV; -errno if no device can be opened.
 */
int device_find_path_to(const union addr *dst, struct gid_entry *ret);

/**
 * device_events() - a number that changes with each event of a device, while cmportd has the port
 * open for us that was opened last; 0: its events are not known. Any lock.
 */
unsigned int device_events(const struct device *device);

/**
 * device_find_loopback() - find GID index 0 of the first active port of all devices. Return: 0 or
 * -errno.
 */
int device_find_loopback(struct gid_entry *ret);

/**
 * device_pd() - get the default protection domain, creating it if needed
 * @ret: shared by all ids of the device, valid until it is closed
 *
 * Return: 0 or -errno.
 */
int device_pd(struct device *device, struct ibv_pd **ret);

/** device_xrcd() - get the XRC domain, private to the process. Return: 0 or -errno. */
int device_xrcd(struct device *device, struct ibv_xrcd **ret);

/**
 * device_port_open() - start delivery of a port's CM messages; cheap if already open
 * @ret: the port, to be released with port_put()
 *
 * Return: 0; -errno as umad_port_open(), with a warning that names the obstacle.
 */
int device_port_open(struct device *device, uint8_t port_num, struct port **ret);

/**
 * device_open_all_ports() - open all devices, and the ports of each; cheap if they are open
 *
 * Return: 0 if a port is open; -errno of the first that cannot be opened; 0 without devices.
 */
int device_open_all_ports(void);

/** device_lacks_port() - return whether device_mark_unsettled() was called since device_settle() */
bool device_lacks_port(void);

/**
 * device_mark_unsettled() - a port could not be opened, or was reported as gone: for
 * device_settle()
 */
static inline void device_mark_unsettled(struct device *device)
{
	__atomic_store_n(&device->lacks_port, true, __ATOMIC_RELAXED);
}

/** device_answers() - return whether a device has not been removed, by a command */
bool device_answers(const struct device *device);

/** device_settle() - open those ports, or notice that their devices are gone; no lock is held */
void device_settle(void);

struct device_want;

/**
 * device_list_look_for() - open the devices of the system that sysfs shows with an interface or GID
 * @number: of the interface or GID, for device_list_has_looked_for()
 */
void device_list_look_for(const struct device_want *want, uint32_t number);

/** device_list_has_looked_for() - true if that was done and no device was removed since. */
bool device_list_has_looked_for(uint32_t number);

/**
 * device_gone() - remove a device from the list, and call device_set_gone()'s function; the caller
 * uses the device; no lock is held. Return: true if it was listed.
 */
bool device_gone(struct device *device);

/**
 * device_set_gone() - set what is called of each removed device, once, in the thread that notices;
 * no lock is held
 */
void device_set_gone(void (*gone)(struct device *device));

/** device_is_gone() - true if removed; may be called with any lock held. */
static inline bool device_is_gone(const struct device *device)
{
	return __atomic_load_n(&device->removed, __ATOMIC_ACQUIRE);
}

/** device_take_port() - of a removed device: an open port, which is the caller's now; or NULL */
struct port *device_take_port(struct device *device);

/** device_after_fork() - in a forked child: drop the ports, without touching the parent's. */
void device_after_fork(void);

#endif
