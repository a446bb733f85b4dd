/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Binding and address resolution: what the engine has to do for them.
 */
#ifndef LIB_CONN_RESOLVE_H
#define LIB_CONN_RESOLVE_H

#include "lib/engine/engine.h"

/**
 * bind_local() - bind an id to a local address and a port
 * @addr: AF_INET or AF_INET6; port 0 for any
 *
 * Return: 0, or -errno as rdma_bind_addr().
 */
int bind_local(struct id *id, const union addr *addr);

/** resolve_neigh_changed() - a link address became known, or will not; no lock is held. */
void resolve_neigh_changed(const struct net_event *event);

/**
 * resolve_expire() - look after resolutions whose deadline has passed; no lock is held
 */
void resolve_expire(struct cm_time now);

/** resolve_stop() - an id no longer waits for its address, if it did; the lock is held. */
void resolve_stop(struct engine *engine, struct id *id);

#endif
