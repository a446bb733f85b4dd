/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * RoCE paths: derived from the IP route, since there is no subnet administrator. The GIDs are the
 * IP addresses, and the kernel resolves the link address of the next hop.
 */
#include <endian.h>
#include <errno.h>

#include "lib/device/kernel.h"
#include "lib/path/ops.h"

#define HEADERS_BYTES	96 /* maximum size of RoCE headers within an interface's MTU */
#define FLOW_LABEL_MASK 0xfffff
#define PKEY_DEFAULT	0xffff
#define PKEY_BASE	0x7fff

static int roce_set_peer(struct path *path, const union addr *peer)
{
	path->dgid = addr_to_gid(peer);
	return 0;
}

/* Return: the largest IB MTU that fits; 0 if none does. */
static uint8_t mtu_of_iface(const struct net_iface *iface)
{
	uint8_t mtu = IBV_MTU_4096; /* encoded: 128 bytes * 2^mtu */

	while (mtu && iface->mtu < (128u << mtu) + HEADERS_BYTES)
		mtu--;
	return mtu;
}

/* Spreads connections over equal-cost paths; the same for the same pair of ports. */
static uint32_t flow_label_of(const union addr *src, const union addr *dst)
{
	if (src->sa.sa_family == AF_INET6 && src->in6.sin6_flowinfo)
		return be32toh(src->in6.sin6_flowinfo) & FLOW_LABEL_MASK;
	return (addr_port(src) * 31u + addr_port(dst)) & FLOW_LABEL_MASK;
}

static int roce_complete(struct path *path, const struct path_query *query,
			 struct sa_msg *ret_question)
{
	struct net_iface iface;
	int err = net_iface_get(path->route.ifindex, &iface);

	(void)ret_question;
	if (err)
		return err;
	path->mtu = mtu_of_iface(&iface);
	if (!path->mtu)
		return -EINVAL;
	path->packet_life_time = query->has_packet_life_time
					 ? query->packet_life_time
					 : kernel_running_habits()->packet_life_time;
	path->flow_label = flow_label_of(&query->claim->local, &query->claim->peer);
	path->traffic_class = query->has_tos ? query->tos : port_tos(path->port);
	path->sl = net_service_level(&iface, path->traffic_class);
	path->hop_limit = path->route.hop_limit;
	path->pkey = PKEY_DEFAULT;
	path->sgid = path->gid.gid;
	path->is_reversible = true;
	return 0;
}

static int roce_read(struct path *path, const struct cm_conn *conn, const struct cm_msg *msg)
{
	(void)msg;
	return gid_by_index(path->port->device->verbs, path->port->port_num, conn->path.sgid_index,
			    &path->gid);
}

static int roce_find_return_route(struct path *path, union addr *us, union addr *peer)
{
	unsigned int ifindex = path->gid.ifindex; /* interface that received the request */
	uint32_t type = path->gid.type;
	int err = gid_find(&path->port->device->verbs, 1, us, ifindex, &path->gid);

	if (!err)
		err = net_route_lookup(peer, us, ifindex, &path->route);
	if (!err && (path->route.ifindex != ifindex || path->gid.type != type))
		err = -EINVAL; /* a queue pair of RoCE v2 would not reach a peer with v1 */
	if (!err && !path->route.local && peer->sa.sa_family == AF_INET)
		err = net_route_leads_by(peer, us, ifindex);
	path->hop_limit = path->route.hop_limit;
	path->sgid = path->gid.gid;
	if (!path_knows_peer(path)) /* a SIDR_REQ does not contain it */
		path->dgid = addr_to_gid(peer);
	return err;
}

/* A RoCE port is in one partition, as a full or limited member. */
static int roce_check_pkey(const struct path *path)
{
	return (path->pkey & PKEY_BASE) == PKEY_BASE ? 0 : -ENOENT;
}

/* Packets follow the route, whatever the record's hop limit. */
static void roce_to_mad(const struct path *path, struct mad_path *ret)
{
	*ret = (struct mad_path){
		.grh = true,
		.sgid_index = (uint8_t)path->gid.gid_index,
		.hop_limit = path->route.hop_limit,
		.traffic_class = path->traffic_class,
		.flow_label = path->flow_label,
		.sl = path->sl,
		.dgid = path->dgid,
	};
}

static void roce_to_ah(const struct path *path, struct ibv_ah_attr *ret)
{
	*ret = (struct ibv_ah_attr){
		.is_global = 1,
		.grh = path_grh(path, path->route.hop_limit),
		.sl = path->sl,
		.port_num = path->gid.port_num,
	};
}

/* As in stock, the GIDs follow from the addresses, even if no device has them. */
static void roce_fill_ib_addr(const struct path *path, struct rdma_ib_addr *io)
{
	io->pkey = path->loopback ? htobe16(PKEY_DEFAULT) : 0;
}

const struct path_ops path_roce = {
	.set_peer = roce_set_peer,
	.complete = roce_complete,
	.read = roce_read,
	.find_return_route = roce_find_return_route,
	.check_pkey = roce_check_pkey,
	.follow = gid_follow,
	.to_mad = roce_to_mad,
	.to_ah = roce_to_ah,
	.fill_ib_addr = roce_fill_ib_addr,
};
