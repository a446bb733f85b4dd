/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * GID tables: the device, port and index of an IP address on an interface. Read through libibverbs
 * and cached; a miss re-reads the tables, because the kernel updates them asynchronously.
 *
 * Thread-safe; no lock is held while a device is queried. The cache is flushed when a lookup of
 * netlink.h has seen an address or link change, and when a device reports an event
 * (gid_set_events()). Code that learns otherwise that a device's table or port has changed, or that
 * closes a device, must call gid_forget(). A table that is read within a quarter of a second of a
 * flush may still be the old one, and is not kept.
 */
#ifndef LIB_NET_GID_TABLE_H
#define LIB_NET_GID_TABLE_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

#include "lib/net/addr.h"

/* What the cache had seen when it answered; .n_edits is 0 if its table was not to be trusted. */
struct gid_stamp {
	unsigned int n_edits; /* of the cache */
	unsigned int changes; /* net_changes() */
	unsigned int events;  /* of the device */
};

struct gid_entry {
	struct gid_stamp as_of;
	struct ibv_context *verbs;
	uint8_t port_num;
	uint32_t gid_index;
	enum ibv_gid_type type; /* preferred: IBV_GID_TYPE_ROCE_V2, then V1, then IB */
	unsigned int ifindex;
	union ibv_gid gid;
};

/**
 * gid_find() - find the GID of an IP address on an interface
 * @devices: open devices to search, in order
 * @n_devices: number of devices
 * @addr:    IP address
 * @ifindex: interface that owns it (the VLAN or bond, not its parent)
 * @ret:     filled in on success
 *
 * Searches only RoCE ports that are active or initialising; on a port that supports RoCE v2, only
 * entries of that type match. Indices above 255 cannot be used for MADs and are skipped.
 *
 * Return: 0; -ENODEV if no device has it; -ENOMEM if a table could not be read.
 */
int gid_find(struct ibv_context *const *devices, int n_devices, const union addr *addr,
	     unsigned int ifindex, struct gid_entry *ret);

/**
 * gid_find_ib() - find the InfiniBand port with a GID
 * @devices: open devices to search, in order
 * @gid:     the GID
 * @ifindex: of its IP over InfiniBand interface, or 0; only stored in @ret
 *
 * Return: as gid_find().
 */
int gid_find_ib(struct ibv_context *const *devices, int n_devices, const struct mad_gid *gid,
		unsigned int ifindex, struct gid_entry *ret);

/**
 * gid_by_index() - get one entry of a port's table, from the cache if possible
 *
 * Return: 0; -ENODEV if there is no such entry; -ENOMEM.
 */
int gid_by_index(struct ibv_context *verbs, uint8_t port_num, uint32_t gid_index,
		 struct gid_entry *ret);

/** gid_is_recent() - true if the lookup that yielded an entry would yield it again; takes no lock
 */
bool gid_is_recent(const struct gid_entry *entry);

/**
 * gid_follow() - update the index of an entry: its address may have been removed and added again
 * @io: only the index and .as_of change
 *
 * Return: 0; -ENODEV if the port no longer has the entry; -ENOMEM.
 */
int gid_follow(struct gid_entry *io);

/** gid_tag() - a 16-bit hash that identifies an entry at any index; never 0 */
uint16_t gid_tag(const struct gid_entry *entry);

/** gid_by_tag() - as gid_by_index(), by the gid_tag() of the entry. */
int gid_by_tag(struct ibv_context *verbs, uint8_t port_num, uint16_t tag, struct gid_entry *ret);

/**
 * gid_is_in_place() - true if the entry is still at its index
 *
 * The kernel keeps an entry at its index while a queue pair uses it: an entry that is in place
 * after the move to RTR is the one that the queue pair uses. Queries the device unless its table is
 * cached and nothing has changed since.
 */
bool gid_is_in_place(const struct gid_entry *entry);

/** gid_refresh() - read the table of a device, unless it is cached and nothing has changed since */
void gid_refresh(struct ibv_context *verbs);

#define GID_NEVER UINT64_MAX

/**
 * gid_read_again_after() - limit how often this thread's lookups read tables again
 * @ns: 0 (the default): whenever that may help; GID_NEVER: not at all, as with a lock held: call
 *      gid_refresh() before; otherwise at most once in this time, and after each change
 */
void gid_read_again_after(uint64_t ns);

/* Return: a number that changes with each event of a device; 0 if its events are not known. */
typedef unsigned int gid_events_fn(const struct ibv_context *verbs);

/** gid_set_events() - set the function that counts the events of devices */
void gid_set_events(gid_events_fn *events);

/** gid_forget() - drop the cached tables of one device, or distrust all with NULL */
void gid_forget(struct ibv_context *verbs);

/**
 * gid_after_fork() - in a forked child: start anew, whatever the parent's threads were doing here
 */
void gid_after_fork(void);

#endif
