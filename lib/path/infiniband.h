/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What is different on an InfiniBand port: who the peer is (a GID, from its IP over InfiniBand link
 * address or from an AF_IB address), which way leads there (the subnet administrator knows), and
 * how LIDs and P_Keys get into messages, queue pairs and address handles.
 *
 * Called by whoever has an id whose path leaves such a port: the engine's lock is held, except
 * where it says otherwise.
 */
#ifndef LIB_PATH_INFINIBAND_H
#define LIB_PATH_INFINIBAND_H

#include "lib/engine/engine.h"

/** infiniband_is() - does the path leave an InfiniBand port? */
static inline bool infiniband_is(const struct id_path *path)
{
	return path->gid.verbs && path->gid.type == IBV_GID_TYPE_IB;
}

/** infiniband_peer() - the GID of an id's peer, on any link layer. */
struct mad_gid infiniband_peer(const struct id *id);

/**
 * infiniband_find() - an AF_IB destination: the port, the P_Key and the peer of a path; no lock
 * @local: what the id is bound to: a GID or none
 * @dst:   the destination
 * @path:  filled
 *
 * Return: 0, -ENODEV.
 */
int infiniband_find(const union addr *local, const union addr *dst, struct id_path *path);

/**
 * infiniband_meet() - the next hop's link address is known: who is it?
 *
 * Return: 0; -EADDRNOTAVAIL behind a router, whose GID is not the peer's; -ENOENT: the port is not
 * in the interface's partition; -EHOSTUNREACH: no such link address.
 */
int infiniband_meet(struct id_path *path);

/**
 * infiniband_ask() - begin to ask for the path of an id; it is in ADDR_RESOLVED
 * @ret_record: to be sent with subnet_send(), when the lock was given up
 *
 * The id is in ROUTE_QUERY then, until ROUTE_RESOLVED or ROUTE_ERROR.
 */
void infiniband_ask(struct engine *engine, struct id *id, int timeout_ms,
		    struct portd_record *ret_record);

/**
 * infiniband_locate() - a request: our port and the way back
 * @path: filled: GID, LIDs, P_Key
 *
 * Return: 0; -EINVAL: what the REQ calls ours is not; -ENOENT: the port is not in the partition.
 */
int infiniband_locate(const struct port *port, const struct cm_conn *conn, const struct cm_msg *msg,
		      struct id_path *path);

/** infiniband_mad_path() - the way of messages to the peer's connection manager */
void infiniband_mad_path(const struct id *id, struct mad_path *ret);

/** infiniband_req_path() - LIDs of the primary path in a REQ, IBTA vol. 1, 12.7 */
void infiniband_req_path(const struct id *id, struct cm_req_path *ret);

/** infiniband_ah() - the address vector of a queue pair, and of an address handle */
void infiniband_ah(const struct id *id, struct ibv_ah_attr *ret);

/* What the groups of a partition have in common. */
struct infiniband_partition {
	uint16_t pkey;
	uint8_t scope;
	struct mad_gid broadcast; /* MGID of the group that IP over InfiniBand broadcasts to */
};

/**
 * infiniband_partition() - the partition that an id is bound in: that of its interface, or of its
 * AF_IB address
 *
 * Return: 0; -EADDRNOTAVAIL: no IP over InfiniBand interface.
 */
int infiniband_partition(const struct id *id, struct infiniband_partition *ret);

/** infiniband_revalidate() - the path led nowhere: tell cmportd. No lock is held. */
void infiniband_revalidate(struct id *id);

#endif
