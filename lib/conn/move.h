/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Changes of link addresses: a bond fails over, at this host or at the peer, or another host takes
 * over the peer's IP address. The events change no state: connections remain connected.
 */
#ifndef LIB_CONN_MOVE_H
#define LIB_CONN_MOVE_H

#include "lib/net/netlink.h"

/**
 * move_report_peer() - report the new link address of a neighbour to its ids; no lock is held
 * @event: of a neighbour; ignored unless its Ethernet address has changed
 *
 * As in the kernel's connection manager since Linux 6.0: an id that resolved its route to this
 * neighbour gets RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT, unless the link address is the one that the
 * neighbour had when the route was resolved.
 */
void move_report_peer(const struct net_event *event);

/**
 * move_report_interface() - report the new link address of a bond to its ids; no lock is held
 * @event: of an interface; ignored unless it is a bond whose link address has changed
 *
 * An id whose address is the bond's gets RDMA_CM_EVENT_ADDR_CHANGE, 0, unless the link address is
 * the one that the bond had when the id got its address.
 */
void move_report_interface(const struct net_event *event);

#endif
