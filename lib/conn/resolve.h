/* SPDX-License-Identifier: BSD-2-Clause */
/* Binding and address resolution in the engine. */
#ifndef LIB_CONN_RESOLVE_H
#define LIB_CONN_RESOLVE_H

#include "lib/engine/engine.h"

/**
 * bind_local() - bind an id to a local address and a port
 * @addr: AF_INET, AF_INET6 or AF_IB; port 0 for any
 *
 * Return: 0, or -errno as rdma_bind_addr().
 */
int bind_local(struct id *id, const union addr *addr);

/** resolve_neigh_changed() - a link address was resolved, or has failed to; no lock is held. */
void resolve_neigh_changed(const struct net_event *event);

/** resolve_expire() - check resolutions whose deadline has passed; no lock is held */
void resolve_expire(struct cm_time now);

/** resolve_stop() - stop the address resolution of an id, if any; the lock is held. */
void resolve_stop(struct engine *engine, struct id *id);

/** resolve_drop_source() - restore the wildcard of a failed resolution; the lock is held. */
void resolve_drop_source(struct id *id);

#endif
