/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Texts of bind and resolution failures, for purecm_last_failure(). The code that detects a failure
 * reports it here; each id keeps the last one. For diagnosis only.
 *
 * May be called with any lock held except the id's own.
 */
#ifndef LIB_DIAG_FAILURE_H
#define LIB_DIAG_FAILURE_H

#include "lib/id/id.h"

/** failure_of_address() - the id cannot be bound to a local address. @err: -errno */
void failure_of_address(struct id *id, const union addr *addr, int err);

/** failure_of_port() - the id cannot bind the port of an address. @err: -errno */
void failure_of_port(struct id *id, const union addr *addr, int err);

/** failure_of_route() - no route, or none through an RDMA device. @err: -errno */
void failure_of_route(struct id *id, const union addr *dst, int err);

/**
 * failure_of_device() - there is a route, but no device for it
 * @route: the route
 * @err:   -errno
 */
void failure_of_device(struct id *id, const union addr *dst, const struct net_route *route,
		       int err);

/** failure_of_neighbour() - the link address of the next hop was not resolved. */
void failure_of_neighbour(struct id *id);

/** failure_of_move() - the peer's link address has changed. @from: old; @to: new */
void failure_of_move(struct id *id, const uint8_t from[NET_ETHERNET_HW_BYTES],
		     const uint8_t to[NET_ETHERNET_HW_BYTES]);

/** failure_of_path() - there is no path to the id's resolved address. @err: -errno */
void failure_of_path(struct id *id, int err);

/** failure_of_answer() - the peer has not answered. */
void failure_of_answer(struct id *id);

#endif
