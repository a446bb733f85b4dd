/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * InfiniBand paths: the peer's GID comes from its IP over InfiniBand link address or from an AF_IB
 * address, the path from the subnet administrator; and how LIDs and P_Keys get into messages, queue
 * pairs and address handles.
 */
#include <endian.h>
#include <errno.h>
#include <net/if_arp.h>

#include "lib/device/port_info.h"
#include "lib/net/mgid.h"
#include "lib/path/ops.h"
#include "lib/path/partition.h"
#include "lib/path/subnet.h"

#define PERMISSIVE_LID	    0xffff
#define PKEY_BASE	    0x7fff
#define TRAFFIC_CLASS_SHIFT 20	 /* in flow information */
#define MULTICAST_PREFIX    0xff /* of a GID */

/* --- the port -------------------------------------------------------------- */

static void take_info(struct port *port)
{
	struct port_info info = port_info_known(port->device, port->port_num);

	__atomic_store_n(&port->needs_grh, info.needs_grh, __ATOMIC_RELAXED);
}

static void infiniband_prepare(struct port *port)
{
	port_info_read(port->device);
	take_info(port);
}

/* The P_Key of an AF_IB address has been looked up already. */
static void infiniband_ask(const struct path *path)
{
	const struct port *port = path->port;
	struct net_iface iface;
	struct port_info info;
	uint16_t index;

	if (path_knows_peer(path) || net_iface_known(path->route.ifindex, &iface))
		port_info(port->device, port->port_num, &info);
	else
		port_pkey_index(port->device, port->port_num, partition_pkey(&iface), &index);
	take_info(path->port);
}

/* --- the peer's end ------------------------------------------------------- */

static int set_pkey(struct path *path, uint16_t pkey)
{
	path->pkey = pkey;
	return port_pkey_known(device_of(path->gid.verbs), path->gid.port_num, pkey,
			       &path->pkey_index);
}

/* A group has no neighbour entry: its GID follows from the interface. */
static int infiniband_set_peer(struct path *path, const union addr *peer)
{
	struct net_iface iface;
	uint8_t hw[32];

	(void)peer;
	if (path_knows_peer(path)) /* from an AF_IB address */
		return 0;
	if (path->route.gateway)
		return -EADDRNOTAVAIL;
	if (net_iface_get(path->route.ifindex, &iface))
		return -EHOSTUNREACH;
	if (addr_is_multicast(&path->route.next_hop)) {
		path->dgid = mgid_ipoib(&path->route.next_hop, partition_scope(&iface),
					partition_pkey(&iface), false);
		return set_pkey(path, partition_pkey(&iface));
	}
	if (net_neigh_hw(&path->route, hw) != NET_IPOIB_HW_BYTES)
		return -EHOSTUNREACH;
	memcpy(&path->dgid, hw + NET_IPOIB_GID_AT, sizeof(path->dgid));
	return set_pkey(path, partition_pkey(&iface));
}

/* --- the path record ------------------------------------------------------ */

/* The administrator may have a path for each class of service. */
static void put_class(const struct path_query *query, struct sa_msg *msg)
{
	const union addr *local = &query->claim->local;
	uint32_t flow_info = 0;

	if (local->sa.sa_family == AF_INET) {
		msg->sa.comp_mask |= SA_PATH_QOS_CLASS;
		msg->path.qos_class = query->tos;
		return;
	}
	if (local->sa.sa_family == AF_INET6)
		flow_info = be32toh(local->in6.sin6_flowinfo);
	else
		flow_info = be32toh(local->ib.sib_flowinfo);
	msg->sa.comp_mask |= SA_PATH_TRAFFIC_CLASS;
	msg->path.traffic_class = (uint8_t)(flow_info >> TRAFFIC_CLASS_SHIFT);
}

static int infiniband_complete(struct path *path, const struct path_query *query,
			       struct sa_msg *ret_question)
{
	struct sa_path *record = &ret_question->path;

	sa_msg_init(ret_question, SA_METHOD_GET, SA_ATTR_PATH_RECORD,
		    SA_PATH_SERVICE_ID | SA_PATH_DGID | SA_PATH_SGID | SA_PATH_REVERSIBLE |
			    SA_PATH_NUMB_PATH | SA_PATH_PKEY,
		    0);
	record->service_id = query->service_id;
	record->dgid = path->dgid;
	memcpy(&record->sgid, &path->gid.gid, sizeof(record->sgid));
	record->reversible = 1;
	record->numb_path = 1;
	record->pkey = path->pkey;
	put_class(query, ret_question);
	return -EINPROGRESS;
}

/* The port's LMC determines which low bits of the source LID are path bits. */
static void infiniband_take_lids(struct path *path, uint16_t slid, uint16_t dlid)
{
	const struct device *device = slid ? device_of(path->gid.verbs) : NULL;
	uint8_t lmc;

	path->slid = slid;
	path->dlid = dlid;
	path->path_bits = 0;
	if (!device)
		return;
	lmc = port_info_known(device, path->gid.port_num).lmc;
	path->path_bits = (uint8_t)(slid & ((1u << lmc) - 1));
}

/* --- paths of requests ---------------------------------------------------- */

/* A SIDR_REQ contains no GIDs: assume GID 0. */
static int read_lookup(struct path *path, const struct cm_conn *conn)
{
	path->gid.ifindex = 0;
	if (conn->path.grh)
		path->dgid = conn->path.dgid;
	path->hop_limit = conn->path.hop_limit;
	infiniband_take_lids(path, 0, conn->path.dlid);
	return set_pkey(path, path->pkey);
}

/* IBTA vol. 1, 12.7.11: data goes to the LID in the REQ, unless it is absent or permissive. */
static int infiniband_read(struct path *path, const struct cm_conn *conn, const struct cm_msg *msg)
{
	const struct cm_req_path *primary = &msg->req.primary;
	bool has_dlid = primary->local_lid && primary->local_lid != PERMISSIVE_LID;

	if (msg->hdr.attr_id == CM_ATTR_SIDR_REQ)
		return read_lookup(path, conn);
	if (gid_find_ib(&path->port->device->verbs, 1, &primary->remote_gid, 0, &path->gid) ||
	    path->gid.port_num != path->port->port_num)
		return -EINVAL;
	infiniband_take_lids(path, primary->remote_lid != PERMISSIVE_LID ? primary->remote_lid : 0,
			     has_dlid ? primary->local_lid : conn->path.dlid);
	return set_pkey(path, path->pkey);
}

static int infiniband_read_alternate(struct path *path, const struct path *primary,
				     const struct cm_req_path *req)
{
	if (gid_find_ib(&primary->port->device->verbs, 1, &req->remote_gid, 0, &path->gid))
		return -EINVAL;
	path->sgid = path->gid.gid;
	infiniband_take_lids(path, req->remote_lid, req->local_lid);
	return set_pkey(path, path->pkey);
}

/* Whether the interface belongs to the port and the partition of a path. */
static bool is_iface_of(const struct net_iface *iface, const void *arg)
{
	const struct path *path = arg;
	struct mad_gid gid;

	return net_iface_gid(iface, &gid) && !memcmp(&gid, &path->gid.gid, sizeof(gid)) &&
	       !((partition_pkey(iface) ^ path->pkey) & PKEY_BASE);
}

static void set_link(union addr *addr, unsigned int ifindex)
{
	if (addr_is_link_local(addr))
		addr->in6.sin6_scope_id = ifindex;
}

/*
 * The interfaces of all partitions of a port have the same link-local address. Does not search the
 * devices: their lock comes before the engine's.
 */
static int infiniband_find_return_route(struct path *path, union addr *us, union addr *peer)
{
	struct net_iface iface;
	int err = net_iface_with_addr(us, is_iface_of, path, &iface);

	if (err)
		return err;
	path->gid.ifindex = iface.ifindex;
	set_link(us, iface.ifindex);
	set_link(peer, iface.ifindex);
	err = net_route_lookup(peer, us, iface.ifindex, &path->route);
	return !err && path->route.ifindex != iface.ifindex ? -EINVAL : err;
}

/* --- conversions ----------------------------------------------------------- */

/* The index was found with the path. */
static int infiniband_check_pkey(const struct path *path)
{
	return path->pkey_index == PATH_NO_PKEY ? -ENOENT : 0;
}

/*
 * IBTA vol. 1, 8.3: a GRH is needed beyond the subnet. As in the kernel, also with a hop limit of
 * one: such packets stay in the subnet, but virtual functions of a device differ only in their
 * GIDs; and where the port requires it. Packets to a group always have a GRH.
 */
static bool needs_grh(const struct path *path)
{
	return path->hop_limit > 0 || (path->port && port_needs_grh(path->port)) ||
	       path->dgid.raw[0] == MULTICAST_PREFIX;
}

static void infiniband_to_mad(const struct path *path, struct mad_path *ret)
{
	*ret = (struct mad_path){ .pkey_index = path->pkey_index,
				  .dlid = path->dlid,
				  .sl = path->sl,
				  .path_bits = path->path_bits };
	if (!needs_grh(path))
		return;
	ret->grh = true;
	ret->sgid_index = (uint8_t)path->gid.gid_index;
	ret->hop_limit = path->hop_limit;
	ret->traffic_class = path->traffic_class;
	ret->flow_label = path->flow_label;
	ret->dgid = path->dgid;
}

static void infiniband_to_ah(const struct path *path, struct ibv_ah_attr *ret)
{
	*ret = (struct ibv_ah_attr){ .dlid = path->dlid,
				     .sl = path->sl,
				     .src_path_bits = path->path_bits,
				     .static_rate = path->rate,
				     .port_num = path->gid.port_num };
	if (!needs_grh(path))
		return;
	ret->is_global = 1;
	ret->grh = path_grh(path, path->hop_limit);
}

static void infiniband_fill_ib_addr(const struct path *path, struct rdma_ib_addr *io)
{
	io->sgid = path->gid.gid;
	if (path_knows_peer(path))
		memcpy(&io->dgid, &path->dgid, sizeof(io->dgid));
	io->pkey = htobe16(path->pkey);
}

static bool infiniband_revalidate(const struct path *path, struct portd_record *ret)
{
	*ret = subnet_revalidate(path->port, &path->dgid);
	return true;
}

const struct path_ops path_infiniband = {
	.is_native = true,
	.prepare = infiniband_prepare,
	.ask = infiniband_ask,
	.set_peer = infiniband_set_peer,
	.complete = infiniband_complete,
	.take_lids = infiniband_take_lids,
	.read = infiniband_read,
	.find_return_route = infiniband_find_return_route,
	.read_alternate = infiniband_read_alternate,
	.check_pkey = infiniband_check_pkey,
	.to_mad = infiniband_to_mad,
	.to_ah = infiniband_to_ah,
	.fill_ib_addr = infiniband_fill_ib_addr,
	.revalidate = infiniband_revalidate,
};
