/* SPDX-License-Identifier: BSD-2-Clause */
/* Finds device, port and GID of a path's local end: see path.h. No lock is held. */
#include <endian.h>
#include <errno.h>

#include "lib/device/port_info.h"
#include "lib/path/partition.h"
#include "lib/path/path.h"

/* RDMA_PS_IPOIB requires an IP over InfiniBand interface, which no RoCE interface is, nor is one
 * without a device. */
static int find_gid(const union addr *addr, unsigned int ifindex, uint16_t ps,
		    struct gid_entry *ret)
{
	int err = device_find_gid(addr, ifindex, ret);

	if (ps == RDMA_PS_IPOIB && (err ? err == -ENODEV : ret->type != IBV_GID_TYPE_IB))
		return -EINVAL;
	return err;
}

static int find_own_gid(const union addr *local, uint16_t ps, struct path *ret)
{
	struct net_iface iface;
	int err;

	if (addr_is_ib(local))
		return find_gid(local, 0, ps, &ret->gid);
	if (addr_is_link_local(local) && !addr_scope(local))
		return -EINVAL;
	err = net_iface_of_addr(local, &iface);
	if (err == -EADDRNOTAVAIL && addr_is_link_local(local))
		return -ENODEV; /* its interface is known, and has no RDMA device */
	return err ? err : find_gid(local, iface.ifindex, ps, &ret->gid);
}

uint16_t path_find_pkey(const struct gid_entry *gid, uint16_t pkey)
{
	uint16_t index = PATH_NO_PKEY;

	if (gid->type != IBV_GID_TYPE_IB)
		return 0;
	port_pkey_index(device_of(gid->verbs), gid->port_num, pkey, &index);
	return index;
}

/* The subnet manager may add the port to the partition later: only queue pairs need its index. */
static void set_partition(const union addr *local, struct path *path)
{
	struct partition partition;

	if (path->gid.type != IBV_GID_TYPE_IB || partition_of(local, path->gid.ifindex, &partition))
		return;
	path->pkey = partition.pkey;
	path->pkey_index = path_find_pkey(&path->gid, path->pkey);
}

int path_bind(const union addr *local, uint16_t ps, struct path *ret)
{
	int err;

	if (addr_is_any(local))
		return 0;
	err = find_own_gid(local, ps, ret);
	if (!err)
		set_partition(local, ret);
	return err;
}

/* The source becomes the destination, or the loopback address if that is a wildcard. */
static void set_loopback(union addr *src, const union addr *peer)
{
	const bool is_any = addr_is_zero(peer);

	if (addr_is_ib(src)) { /* it has its own service id */
		src->ib.sib_addr = peer->ib.sib_addr;
		src->ib.sib_addr.sib_addr8[15] |= is_any;
		src->ib.sib_pkey = peer->ib.sib_pkey;
	} else if (src->sa.sa_family == AF_INET6) {
		src->in6.sin6_addr = is_any ? in6addr_loopback : peer->in6.sin6_addr;
	} else {
		src->in4.sin_addr.s_addr = is_any ? htonl(INADDR_LOOPBACK)
						  : peer->in4.sin_addr.s_addr;
	}
}

static int find_loopback(const struct port_claim *claim, struct path *ret)
{
	ret->loopback = true;
	ret->route.src = claim->local;
	if (addr_is_zero(&claim->local))
		set_loopback(&ret->route.src, &claim->peer);
	return device_find_loopback(&ret->gid);
}

/* To an AF_IB address: it contains the peer's GID, so there is no next hop to resolve. */
static int find_native(const struct port_claim *claim, struct path *ret)
{
	uint16_t pkey = be16toh(claim->peer.ib.sib_pkey);
	int err = addr_is_any(&claim->local) ? device_find_path_to(&claim->peer, &ret->gid)
					     : device_find_gid(&claim->local, 0, &ret->gid);

	ret->pkey = pkey ? pkey : UINT16_MAX;
	if (!err)
		err = port_pkey_index(device_of(ret->gid.verbs), ret->gid.port_num, ret->pkey,
				      &ret->pkey_index);
	if (err)
		return -ENODEV;
	memcpy(&ret->dgid, &claim->peer.ib.sib_addr, sizeof(ret->dgid));
	ret->route.src = claim->local;
	memcpy(&ret->route.src.ib.sib_addr, &ret->gid.gid, sizeof(ret->gid.gid));
	ret->route.src.ib.sib_pkey = htobe16(ret->pkey);
	ret->route.resolved = true;
	return 0;
}

/*
 * A bound source determines the GID, even if the route leaves by another interface: in a VRF and
 * over IPv6 the kernel returns such a route although it was asked for one by the source's.
 */
static int find_route(const struct path_query *query, struct path *ret, int *ret_status)
{
	const struct port_claim *claim = query->claim;
	const union addr *src = addr_is_zero(&claim->local) ? NULL : &claim->local;
	int err = net_route_lookup(&claim->peer, src, query->ifindex, &ret->route);
	unsigned int ifindex = src && query->ifindex ? query->ifindex : ret->route.ifindex;

	if (!err)
		*ret_status = find_gid(&ret->route.src, ifindex, claim->ps, &ret->gid);
	return err;
}

/*
 * As in stock, a source that identifies a device stays even if the destination is a wildcard or a
 * loopback address. The path leads from the device to itself.
 */
static int find_to_itself(const struct path_query *query, struct path *ret, int *ret_status)
{
	struct port_claim claim = *query->claim;
	struct path_query itself = *query;
	int err;

	if (addr_is_ib(&claim.local)) {
		claim.peer.ib.sib_addr = claim.local.ib.sib_addr;
		return find_native(&claim, ret);
	}
	claim.peer = claim.local;
	itself.claim = &claim;
	err = find_route(&itself, ret, ret_status);
	ret->route.hop_limit = 0;
	return err;
}

int path_find(const struct path_query *query, struct path *ret, int *ret_status)
{
	const struct port_claim *claim = query->claim;
	int err;

	*ret_status = 0;
	if (addr_is_any(&claim->peer) && addr_is_any(&claim->local))
		return find_loopback(claim, ret);
	if (addr_is_any(&claim->peer))
		err = find_to_itself(query, ret, ret_status);
	else if (addr_is_ib(&claim->peer))
		err = find_native(claim, ret);
	else
		err = find_route(query, ret, ret_status);
	if (err || *ret_status)
		return err;
	err = device_port_open(device_of(ret->gid.verbs), ret->gid.port_num, &ret->port);
	if (!err)
		path_ask_port(ret);
	return err;
}
