/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * GID tables: which device, port and index stand for an IP address on an interface. Read through
 * libibverbs and cached; a miss re-reads the tables, because the kernel fills them asynchronously.
 *
 * Resolution and binding ask, from any thread. What is cached is forgotten when a look-up of
 * netlink.h has seen an address or a link change. Whoever learns that a device's table or port
 * changed calls gid_forget(); so does whoever closes a device. A table that is read within a
 * quarter of a second of either may still be the old one and is not kept.
 */
#ifndef LIB_NET_GID_H
#define LIB_NET_GID_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

#include "lib/net/addr.h"

struct gid_entry {
	struct ibv_context *verbs;
	uint8_t port_num;
	uint32_t gid_index;
	enum ibv_gid_type type; /* IBV_GID_TYPE_ROCE_V2 is preferred, then V1, then IB */
	unsigned int ifindex;
	union ibv_gid gid;
};

/**
 * gid_find() - the GID that stands for an IP address on an interface
 * @devices: open devices to look at, in order
 * @n_devices: how many
 * @addr:    IP address
 * @ifindex: interface that owns it (the VLAN or bond, not its parent)
 * @ret:     filled on success
 *
 * Only ports that are RoCE and active or initialising count; on a port that offers RoCE v2 only
 * entries of that type match. Indices above 255 are not usable for MADs and are skipped.
 *
 * Return: 0; -ENODEV if no device has it; -ENOMEM if one that could have it cannot be read for want
 * of memory.
 */
int gid_find(struct ibv_context *const *devices, int n_devices, const union addr *addr,
	     unsigned int ifindex, struct gid_entry *ret);

/**
 * gid_find_ib() - the InfiniBand port that has a GID
 * @devices: open devices to look at, in order
 * @gid:     the GID
 * @ifindex: of the IP over InfiniBand interface that goes with it, or 0: for @ret alone
 *
 * Return: as gid_find().
 */
int gid_find_ib(struct ibv_context *const *devices, int n_devices, const struct mad_gid *gid,
		unsigned int ifindex, struct gid_entry *ret);

/**
 * gid_by_index() - one entry of a port's table, from the cache where possible
 *
 * Return: 0; -ENODEV if there is no such entry; -ENOMEM.
 */
int gid_by_index(struct ibv_context *verbs, uint8_t port_num, uint32_t gid_index,
		 struct gid_entry *ret);

/**
 * gid_follow() - the index that an entry has by now: its address may have gone and come back
 * @io: only the index changes
 *
 * Return: 0; -ENODEV if the port has no such entry any more; -ENOMEM.
 */
int gid_follow(struct gid_entry *io);

/** gid_tag() - stands for an entry wherever in its table it is, as well as 16 bits can; never 0 */
uint16_t gid_tag(const struct gid_entry *entry);

/** gid_by_tag() - as gid_by_index(), by what gid_tag() said of the entry. Return: likewise. */
int gid_by_tag(struct ibv_context *verbs, uint8_t port_num, uint16_t tag, struct gid_entry *ret);

/**
 * gid_is_in_place() - return whether the entry is still at its index; queries the device itself
 *
 * The kernel leaves an entry where it is while a queue pair uses it: what is in place after a queue
 * pair was moved to RTR is what the queue pair has.
 */
bool gid_is_in_place(const struct gid_entry *entry);

/**
 * gid_forget() - drop what is cached: of one device, or all with NULL
 */
void gid_forget(struct ibv_context *verbs);

/**
 * gid_after_fork() - start afresh in a forked child, whatever another thread of the parent was
 * doing here
 */
void gid_after_fork(void);

#endif
