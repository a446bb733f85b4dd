/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Routes: see route.h.
 */
#include "tools/fabric/wire/route.h"

#include <errno.h>

/*
 * IBTA vol. 1, 19.2.3: a router decrements the hop limit, and drops packets whose limit is
 * exhausted.
 */
static int find_beyond(const struct fab_folder *folder, const struct fab_port *from,
		       const struct fab_route *route, struct fab_owner *ret)
{
	if (!route->has_grh || route->hop_limit <= 1 ||
	    route->dgid.global.subnet_prefix == from->gid[0].gid.global.subnet_prefix)
		return -EHOSTUNREACH;
	return fab_folder_owner_of(folder, &route->dgid, ret);
}

int fab_route_find(const struct fab_folder *folder, const struct fab_port *from,
		   const struct fab_route *route, struct fab_owner *ret)
{
	if (from->link_layer == IBV_LINK_LAYER_ETHERNET)
		return fab_folder_owner_of(folder, &route->dgid, ret);
	if (route->dlid == FAB_LID_ROUTER)
		return find_beyond(folder, from, route, ret);
	return fab_folder_owner_of_lid(folder, from->subnet, route->dlid, ret);
}

void fab_route_sent(struct fab_packet *packet)
{
	if (packet->dlid != FAB_LID_ROUTER)
		return;
	packet->slid = FAB_LID_ROUTER;
	packet->hop_limit--;
}
