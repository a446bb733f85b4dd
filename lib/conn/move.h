/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Peers that get another link address: a failover of a bond, or an address that another host took.
 *
 * As the kernel's connection manager does since Linux 6.0, ids whose route was resolved here hear
 * of it, whatever they are doing: what they send may not arrive any more. What the program makes of
 * it is its business; a connection goes on.
 */
#ifndef LIB_CONN_MOVE_H
#define LIB_CONN_MOVE_H

#include "lib/net/netlink.h"

/**
 * move_report() - a neighbour has another link address; no lock is held
 *
 * Ids with a route of their own to it get RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT; not so if it is
 * again what it was when their route was resolved.
 */
void move_report(const struct net_event *event);

#endif
