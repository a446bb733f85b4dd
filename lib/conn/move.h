/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A peer's link address changes: its bond fails over, or another host takes its IP address.
 *
 * The kernel's connection manager reports that since Linux 6.0 to each id whose route was resolved
 * here, in every later state. The event changes no state: a connection stays connected.
 */
#ifndef LIB_CONN_MOVE_H
#define LIB_CONN_MOVE_H

#include "lib/net/netlink.h"

/**
 * move_report() - report the new link address of a neighbour to its ids; no lock is held
 * @event: of a neighbour; ignored unless a link address of Ethernet has changed
 *
 * An id that resolved its route to this neighbour gets RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT,
 * unless the link address is the one that the neighbour had when the route was resolved.
 */
void move_report(const struct net_event *event);

#endif
