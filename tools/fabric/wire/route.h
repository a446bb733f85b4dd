/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which port a packet comes to. On RoCE the GID determines it; on InfiniBand the LID, within a
 * subnet. A router has a LID in each subnet, and brings a packet with a GRH to any GID of the other
 * subnets.
 */
#ifndef FABRIC_ROUTE_H
#define FABRIC_ROUTE_H

#include "tools/fabric/wire/packet.h"
#include "tools/fabric/wire/folder.h"

#define FAB_SUBNETS    8
#define FAB_LID_ROUTER 0xbf00 /* in every subnet; ends in zeros, so that it has no path bits */
#define FAB_LID_MCAST  0xc000

/* An address, as address handles and umad have it. */
struct fab_route {
	uint16_t dlid;
	bool has_grh;
	uint8_t hop_limit;
	union ibv_gid dgid;
};

/**
 * fab_route_find() - who gets what is sent to an address
 * @from: the port that it leaves by
 *
 * Return: 0; -EHOSTUNREACH if nobody: there is no such port, it is in the other subnet, or the
 * packet must not go that far.
 */
int fab_route_find(const struct fab_folder *folder, const struct fab_port *from,
		   const struct fab_route *route, struct fab_owner *ret);

/** fab_route_sent() - what a router changes of a packet, if its LID is the router's. */
void fab_route_sent(struct fab_packet *packet);

#endif
