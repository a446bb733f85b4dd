/* SPDX-License-Identifier: BSD-2-Clause */
/* Finds the route and the neighbour for the packets to a GID: see hop.h. */
#include "lib/net/hop.h"

#include <string.h>

/* The IP address of a RoCE v2 GID; the interface is the scope of a link-local one. */
static void hop_addr(const struct mad_gid *gid, unsigned int ifindex, union addr *ret)
{
	memset(ret, 0, sizeof(*ret));
	if (mad_gid_is_ipv4(gid)) {
		ret->in4.sin_family = AF_INET;
		memcpy(&ret->in4.sin_addr, gid->raw + GID_IPV4_AT, 4);
		return;
	}
	ret->in6.sin6_family = AF_INET6;
	memcpy(&ret->in6.sin6_addr, gid->raw, sizeof(gid->raw));
	if (addr_is_link_local(ret))
		ret->in6.sin6_scope_id = ifindex;
}

bool hop_is_here(const struct gid_entry *local)
{
	struct mad_gid gid;
	union addr addr;

	memcpy(&gid, &local->gid, sizeof(gid));
	hop_addr(&gid, local->ifindex, &addr);
	return net_iface_has_addr(local->ifindex, &addr);
}

static int find_route(const struct gid_entry *local, const struct mad_gid *dgid,
		      struct net_route *ret)
{
	union addr src, dst;
	struct mad_gid sgid;

	memcpy(&sgid, &local->gid, sizeof(sgid));
	hop_addr(&sgid, local->ifindex, &src);
	hop_addr(dgid, local->ifindex, &dst);
	return net_route_lookup(&dst, &src, local->ifindex, ret);
}

void hop_next(struct ibv_context *verbs, uint8_t port_num, uint8_t sgid_index,
	      const struct mad_gid *dgid, union addr *ret)
{
	struct gid_entry local;
	struct net_route route;

	memset(ret, 0, sizeof(*ret));
	if (!gid_by_index(verbs, port_num, sgid_index, &local) && !find_route(&local, dgid, &route))
		*ret = route.next_hop;
}

void hop_revalidate(struct ibv_context *verbs, uint8_t port_num, uint8_t sgid_index,
		    const struct mad_gid *dgid)
{
	struct gid_entry local;
	struct net_route route;

	if (!gid_by_index(verbs, port_num, sgid_index, &local) && !find_route(&local, dgid, &route))
		net_neigh_revalidate(&route);
}

/* Return: its state, with its route; NET_NEIGH_KNOWN if nothing can be found out. */
static enum net_neigh state_of(struct ibv_context *verbs, uint8_t port_num, uint8_t sgid_index,
			       const struct mad_gid *dgid, struct net_route *ret)
{
	struct gid_entry local;

	if (gid_by_index(verbs, port_num, sgid_index, &local) || local.type == IBV_GID_TYPE_IB)
		return NET_NEIGH_KNOWN;
	if (find_route(&local, dgid, ret))
		return hop_is_here(&local) ? NET_NEIGH_PENDING : NET_NEIGH_KNOWN;
	return net_neigh_state(ret);
}

bool hop_is_known(struct ibv_context *verbs, uint8_t port_num, uint8_t sgid_index,
		  const struct mad_gid *dgid)
{
	struct net_route route;

	return state_of(verbs, port_num, sgid_index, dgid, &route) == NET_NEIGH_KNOWN;
}

bool hop_is_ready(struct ibv_context *verbs, uint8_t port_num, uint8_t sgid_index,
		  const struct mad_gid *dgid)
{
	struct net_route route;
	const enum net_neigh state = state_of(verbs, port_num, sgid_index, dgid, &route);

	if (state == NET_NEIGH_FAILED || state == NET_NEIGH_NONE)
		net_neigh_ask(&route);
	return state == NET_NEIGH_KNOWN;
}
