/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * RDMA devices of the process: one ibv_context each, opened once and never closed, because
 * programs compare and keep the pointers; a default protection domain and an XRC domain, made at
 * the first need and kept as long; and the ports whose CM messages cmportd delivers to us.
 *
 * Stock frees a default protection domain with the last id. Only `rdma resource` shows the
 * difference, and a connection costs two system calls less.
 */
#ifndef LIB_DEVICE_DEVICE_H
#define LIB_DEVICE_DEVICE_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

#include "cm/conn.h"
#include "lib/engine/port.h"
#include "lib/net/gid.h"

struct device {
	struct ibv_context *verbs;
	struct ibv_device_attr attr;
	unsigned int flush_access; /* IBV_ACCESS_*: what FLUSH of a peer needs, if the device can */
	struct ibv_pd *pd;	   /* the default one; NULL until it is needed */
	struct ibv_xrcd *xrcd;	   /* of queue pairs that bring none; NULL until it is needed */
	struct port **port;	   /* by port number - 1; NULL while not open */
	uint8_t n_ports;
	bool removed;	      /* written under the list's lock */
	struct device *known; /* the next of all that were ever opened */
};

/* The devices at one moment. It stays as it is, and for ever: whoever reads it holds no lock. */
struct device_list {
	int n;
	struct device **device;
	struct ibv_context **verbs; /* theirs */
	const struct device_list *before;
};

/**
 * device_list_load() - open the devices of the system, once
 *
 * Return: 0; -ENODEV if there is none that can be opened; -ENOMEM.
 */
int device_list_load(void);

/** device_list_refresh() - open devices that have come since. Return: as device_list_load(). */
int device_list_refresh(void);

/** device_count() - how many devices are open; opens none. */
int device_count(void);

/** device_list() - the open devices; some may be gone by now, see device_is_gone(). */
const struct device_list *device_list(void);

/** device_of() - the device with this context, also one that is gone; or NULL. */
struct device *device_of(const struct ibv_context *verbs);

/** device_of_node() - the listed device behind "uverbs0", or NULL. */
struct device *device_of_node(const char *name);

/**
 * device_find_gid() - the device, port and GID index that stand for a local IP address
 * @ifindex: the interface that owns the address
 *
 * Return: 0, -ENODEV.
 */
int device_find_gid(const union addr *addr, unsigned int ifindex, struct gid_entry *ret);

/**
 * device_find_path_to() - the InfiniBand port that an AF_IB destination is reached from
 * @dst: its GID and P_Key
 * @ret: GID index 0 of the port that has the GID, or of the first active one on its subnet
 *
 * Return: 0, -ENODEV.
 */
int device_find_path_to(const union addr *dst, struct gid_entry *ret);

/**
 * device_pkey_index() - where a port has a P_Key, as a full or limited member
 * @pkey: host byte order
 *
 * Return: 0; -ENOENT: the port is not in that partition.
 */
int device_pkey_index(const struct gid_entry *gid, uint16_t pkey, uint16_t *ret);

/** device_find_loopback() - GID index 0 of the first active port. Return: 0, -ENODEV. */
int device_find_loopback(struct gid_entry *ret);

/**
 * device_pd() - the default protection domain, made if need be
 * @ret: the same until the process ends, for all ids of the device
 *
 * Return: 0 or -errno.
 */
int device_pd(struct device *device, struct ibv_pd **ret);

/** device_xrcd() - the XRC domain of this process alone, as device_pd(). Return: 0 or -errno. */
int device_xrcd(struct device *device, struct ibv_xrcd **ret);

/**
 * device_port_open() - have the CM messages of a port; the same port again is free
 * @ret: to be given back with port_put()
 *
 * Return: 0 or as umad_port_open(); a warning says what is in the way.
 */
int device_port_open(struct device *device, uint8_t port_num, struct port **ret);

/** device_gone() - the device was removed: not listed any more. Return: whether that is news. */
bool device_gone(struct device *device);

/** device_is_gone() - may be asked with any lock held. */
static inline bool device_is_gone(const struct device *device)
{
	return __atomic_load_n(&device->removed, __ATOMIC_ACQUIRE);
}

/** device_port_gone() - a removed device's port is no longer watched: drop the list's reference. */
void device_port_gone(struct port *port);

/** device_after_fork() - a child has no port, and touches nothing of its parent's. */
void device_after_fork(void);

#endif
