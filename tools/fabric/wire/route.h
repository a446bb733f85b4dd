/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Lookup of a packet's destination port: on RoCE by GID; on InfiniBand by LID, within a subnet. A
 * router has a LID in each subnet, and forwards packets with a GRH to any GID of other subnets.
 */
#ifndef FABRIC_ROUTE_H
#define FABRIC_ROUTE_H

#include "tools/fabric/wire/packet.h"
#include "tools/fabric/wire/folder.h"

#define FAB_LID_ROUTER 0xbf00 /* in every subnet; the trailing zeros leave room for path bits */
#define FAB_LID_MCAST  0xc000

/* A destination, from an address handle or umad. */
struct fab_route {
	uint16_t dlid;
	bool has_grh;
	uint8_t hop_limit;
	union ibv_gid dgid;
};

/**
 * fab_route_find() - find the destination port of an address
 * @from: the source port
 *
 * Return: 0; -EHOSTUNREACH if there is no such port, it is in another subnet, or the hop limit is
 * too low.
 */
int fab_route_find(const struct fab_folder *folder, const struct fab_port *from,
		   const struct fab_route *route, struct fab_owner *ret);

/** fab_route_sent() - apply a router's changes to a packet, if its LID is the router's */
void fab_route_sent(struct fab_packet *packet);

#endif
