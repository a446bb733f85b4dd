/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Checks whether the next hop of a MAD is resolved, for servers that must not block on one client.
 */
#ifndef LIB_NET_HOP_H
#define LIB_NET_HOP_H

#include "lib/net/gid_table.h"
#include "lib/net/netlink.h"

/**
 * hop_is_ready() - true if a MAD can be sent without waiting for address resolution
 * @verbs:      sending device
 * @port_num:   sending port
 * @sgid_index: source GID
 * @dgid:       destination GID
 *
 * If not, asks the kernel to resolve the next hop, so that a later attempt succeeds. Neighbours of
 * another network namespace cannot be checked: its processes have resolved them.
 *
 * Return: true if the link address is known, or if nothing can be found out.
 */
bool hop_is_ready(struct ibv_context *verbs, uint8_t port_num, uint8_t sgid_index,
		  const struct mad_gid *dgid);

/** hop_is_known() - as hop_is_ready(), but does not ask the kernel to resolve the next hop */
bool hop_is_known(struct ibv_context *verbs, uint8_t port_num, uint8_t sgid_index,
		  const struct mad_gid *dgid);

/**
 * hop_next() - get the next hop: a gateway, or the destination itself
 * @ret: filled in; all zero if there is no route. Other arguments as for hop_is_ready()
 */
void hop_next(struct ibv_context *verbs, uint8_t port_num, uint8_t sgid_index,
	      const struct mad_gid *dgid, union addr *ret);

/**
 * hop_is_here() - true if a GID is an address of this network namespace
 *
 * Return: false if the address is in another one, such as that of a container's macvlan, or gone.
 */
bool hop_is_here(const struct gid_entry *local);

/** hop_revalidate() - no answer came from there: see net_neigh_revalidate(). Arguments as above. */
void hop_revalidate(struct ibv_context *verbs, uint8_t port_num, uint8_t sgid_index,
		    const struct mad_gid *dgid);

#endif
