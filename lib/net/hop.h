/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Is the next hop of a MAD resolved? For who serves many and must not wait for one.
 */
#ifndef LIB_NET_HOP_H
#define LIB_NET_HOP_H

#include "lib/net/gid.h"
#include "lib/net/netlink.h"

/**
 * hop_is_ready() - can a MAD leave at once?
 * @verbs:      the device where it would leave
 * @port_num:   and the port
 * @sgid_index: and the GID it would leave from
 * @dgid:       where to
 *
 * If not, the kernel is asked to resolve the next hop, so that a later try finds it. Neighbours of
 * another network namespace cannot be looked at: who is there has resolved them.
 *
 * Return: true if the link address is known, or if nothing is known against sending.
 */
bool hop_is_ready(struct ibv_context *verbs, uint8_t port_num, uint8_t sgid_index,
		  const struct mad_gid *dgid);

/**
 * hop_next() - whose link address that takes: a gateway's, or the peer's own
 * @ret: filled; all zero if there is no way. The other arguments as above
 */
void hop_next(struct ibv_context *verbs, uint8_t port_num, uint8_t sgid_index,
	      const struct mad_gid *dgid, union addr *ret);

/**
 * hop_is_here() - is a GID an address of this network namespace?
 *
 * Return: false if it is one of another, as those of a container's macvlan; or of nobody any more.
 */
bool hop_is_here(const struct gid_entry *local);

/** hop_revalidate() - what went there was not answered: see net_neigh_revalidate(). Arguments as
 * above. */
void hop_revalidate(struct ibv_context *verbs, uint8_t port_num, uint8_t sgid_index,
		    const struct mad_gid *dgid);

#endif
