/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What was wrong with which address or route, in words, for purecm_last_failure(). Whoever finds it
 * out says so here; each id keeps the last. Nothing decides by it.
 *
 * May be called with any lock held but the id's own.
 */
#ifndef LIB_DIAG_FAILURE_H
#define LIB_DIAG_FAILURE_H

#include "lib/id/id.h"

/** failure_of_address() - the id cannot be bound to an address of this host. @err: -errno */
void failure_of_address(struct id *id, const union addr *addr, int err);

/** failure_of_port() - the id cannot have the port of an address. @err: -errno */
void failure_of_port(struct id *id, const union addr *addr, int err);

/** failure_of_route() - the kernel would not send there, or by no device of ours. @err: -errno */
void failure_of_route(struct id *id, const union addr *dst, int err);

/**
 * failure_of_device() - there is a route, and no device for it
 * @route: which
 * @err:   -errno
 */
void failure_of_device(struct id *id, const union addr *dst, const struct net_route *route,
		       int err);

/** failure_of_neighbour() - the next hop of the id's route did not tell its link address. */
void failure_of_neighbour(struct id *id);

/** failure_of_move() - the peer's link address is another one. @from: before; @to: now */
void failure_of_move(struct id *id, const uint8_t from[NET_ETHERNET_HW_BYTES],
		     const uint8_t to[NET_ETHERNET_HW_BYTES]);

/** failure_of_path() - the id's resolved address leads nowhere. @err: -errno */
void failure_of_path(struct id *id, int err);

#endif
