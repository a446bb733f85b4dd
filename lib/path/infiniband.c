/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * InfiniBand ports: see infiniband.h.
 */
#include "lib/path/infiniband.h"

#include <endian.h>
#include <errno.h>
#include <string.h>

#include "lib/diag/failure.h"
#include "lib/diag/log.h"
#include "lib/engine/host.h"
#include "lib/net/mgid.h"
#include "lib/path/roce.h"
#include "lib/path/route_event.h"
#include "mad/cma_hdr.h"

#define PERMISSIVE_LID	    0xffff
#define TRAFFIC_CLASS_SHIFT 20 /* in a flow info */
#define PATH_RECORD_BYTES   64 /* of struct ibv_path_record, which is the record as on the wire */

/* --- who the peer is ----------------------------------------------------- */

struct mad_gid infiniband_peer(const struct id *id)
{
	return id->path.has_peer_gid ? id->path.peer_gid : addr_to_gid(&id->claim.peer);
}

static void set_peer(struct id_path *path, const void *gid)
{
	memcpy(&path->peer_gid, gid, sizeof(path->peer_gid));
	path->has_peer_gid = true;
}

static int set_pkey(struct id_path *path, uint16_t pkey)
{
	path->pkey = pkey;
	return device_pkey_index(&path->gid, pkey, &path->pkey_index);
}

static struct gid_entry own_port(const union addr *local, const union addr *dst, int *ret_err)
{
	struct gid_entry gid = { 0 };

	*ret_err = addr_is_any(local) ? device_find_path_to(dst, &gid)
				      : device_find_gid(local, 0, &gid);
	return gid;
}

int infiniband_find(const union addr *local, const union addr *dst, struct id_path *path)
{
	uint16_t pkey = be16toh(dst->ib.sib_pkey);
	int err;

	path->gid = own_port(local, dst, &err);
	if (!err)
		err = set_pkey(path, pkey ? pkey : UINT16_MAX);
	if (err)
		return -ENODEV;
	path->route.src = *local;
	memcpy(&path->route.src.ib.sib_addr, &path->gid.gid, sizeof(path->gid.gid));
	path->route.src.ib.sib_pkey = htobe16(path->pkey);
	path->route.resolved = true;
	set_peer(path, &dst->ib.sib_addr);
	return 0;
}

static uint16_t pkey_of(const struct net_iface *iface)
{
	const uint8_t *at = iface->hw_broadcast + NET_IPOIB_PKEY_AT;

	return (uint16_t)(at[0] << 8 | at[1]);
}

#define BROADCAST_GID_AT 4
#define SCOPE_AT	 1 /* of a GID, the low half */
#define PKEY_AT		 4
#define SCOPE_LOCAL	 2

static uint8_t scope_of(const struct net_iface *iface)
{
	return iface->hw_broadcast[BROADCAST_GID_AT + SCOPE_AT] & 0x0f;
}

/* A group has no neighbour entry: its link address follows from that of the interface. */
static int meet_group(struct id_path *path, const struct net_iface *iface)
{
	struct mad_gid mgid =
		mgid_ipoib(&path->route.next_hop, scope_of(iface), pkey_of(iface), false);

	set_peer(path, &mgid);
	return set_pkey(path, pkey_of(iface));
}

int infiniband_meet(struct id_path *path)
{
	struct net_iface iface;
	uint8_t hw[32];

	if (path->route.gateway)
		return -EADDRNOTAVAIL;
	if (net_iface_get(path->route.ifindex, &iface))
		return -EHOSTUNREACH;
	if (addr_is_multicast(&path->route.next_hop))
		return meet_group(path, &iface);
	if (net_neigh_hw(&path->route, hw) != NET_IPOIB_HW_BYTES)
		return -EHOSTUNREACH;
	set_peer(path, hw + NET_IPOIB_GID_AT);
	return set_pkey(path, pkey_of(&iface));
}

static int partition_of_iface(unsigned int ifindex, struct infiniband_partition *ret)
{
	struct net_iface iface;

	if (net_iface_get(ifindex, &iface) || iface.hw_bytes != NET_IPOIB_HW_BYTES)
		return -EADDRNOTAVAIL;
	memcpy(&ret->broadcast, iface.hw_broadcast + BROADCAST_GID_AT, sizeof(ret->broadcast));
	ret->pkey = pkey_of(&iface);
	ret->scope = scope_of(&iface);
	return 0;
}

int infiniband_partition(const struct id *id, struct infiniband_partition *ret)
{
	/* RFC 4391, 4: ff12:401b:<P_Key>::ffff:ffff */
	static const struct mad_gid broadcast = {
		{0xff, 0x12, 0x40, 0x1b, [12] = 0xff, 0xff, 0xff, 0xff}
	};
	uint16_t pkey = be16toh(id->claim.local.ib.sib_pkey);

	if (!addr_is_ib(&id->claim.local))
		return partition_of_iface(id->path.gid.ifindex, ret);
	ret->pkey = pkey ? pkey : UINT16_MAX;
	ret->scope = SCOPE_LOCAL;
	ret->broadcast = broadcast;
	ret->broadcast.raw[PKEY_AT] = (uint8_t)(ret->pkey >> 8);
	ret->broadcast.raw[PKEY_AT + 1] = (uint8_t)ret->pkey;
	return 0;
}

/* --- the path ------------------------------------------------------------ */

/* The administrator may know of a path for each class of service. */
static void put_class(const struct id *id, struct sa_msg *msg)
{
	const union addr *local = &id->claim.local;
	uint32_t flow_info = 0;

	if (local->sa.sa_family == AF_INET) {
		msg->sa.comp_mask |= SA_PATH_QOS_CLASS;
		msg->path.qos_class = id->option.tos;
		return;
	}
	if (local->sa.sa_family == AF_INET6)
		flow_info = be32toh(local->in6.sin6_flowinfo);
	else
		flow_info = be32toh(local->ib.sib_flowinfo);
	msg->sa.comp_mask |= SA_PATH_TRAFFIC_CLASS;
	msg->path.traffic_class = (uint8_t)(flow_info >> TRAFFIC_CLASS_SHIFT);
}

static uint64_t service_of(const struct id *id)
{
	if (addr_is_ib(&id->claim.peer))
		return be64toh(id->claim.peer.ib.sib_sid);
	return cma_service_id(id->claim.ps, addr_port(&id->claim.peer));
}

static void put_question(const struct id *id, struct sa_msg *msg)
{
	sa_msg_init(msg, SA_METHOD_GET, SA_ATTR_PATH_RECORD,
		    SA_PATH_SERVICE_ID | SA_PATH_DGID | SA_PATH_SGID | SA_PATH_REVERSIBLE |
			    SA_PATH_NUMB_PATH | SA_PATH_PKEY,
		    0);
	msg->path.service_id = service_of(id);
	msg->path.dgid = infiniband_peer(id);
	memcpy(&msg->path.sgid, &id->path.gid.gid, sizeof(msg->path.sgid));
	msg->path.reversible = 1;
	msg->path.numb_path = 1;
	msg->path.pkey = id->path.pkey;
	put_class(id, msg);
}

static void take_answer(struct id *id, const struct sa_msg *answer)
{
	struct ibv_path_record record = { 0 };

	_Static_assert(sizeof(record) == PATH_RECORD_BYTES, "as on the wire");
	wire_encode(&sa_path_layout, &answer->path, (uint8_t *)&record);
	roce_take_path(id, &record);
}

static void route_told(struct subnet_ask *ask, int err, const struct sa_msg *answer)
{
	struct id *id = container_of(ask, struct id, route_ask);

	if (id->state != ID_ROUTE_QUERY)
		return;
	if (err) {
		id->state = ID_ADDR_RESOLVED;
		failure_of_path(id, err);
		id_notify(id, RDMA_CM_EVENT_ROUTE_ERROR, err);
		return;
	}
	take_answer(id, answer);
	route_event_post(id);
}

void infiniband_ask(struct engine *engine, struct id *id, int timeout_ms,
		    struct portd_record *ret_record)
{
	put_question(id, &id->route_ask.msg);
	id->route_ask.timeout_ms = (unsigned int)timeout_ms;
	id->route_ask.done = route_told;
	id->state = ID_ROUTE_QUERY;
	subnet_ask(engine, &id->route_ask, id->path.port, ret_record);
}

void infiniband_revalidate(struct id *id)
{
	struct portd_record record;
	bool is_ours;

	engine_lock();
	is_ours = infiniband_is(&id->path) && id->path.port;
	if (is_ours) {
		struct mad_gid peer = infiniband_peer(id);

		record = subnet_revalidate(id->path.port, &peer);
	}
	engine_unlock();
	if (is_ours)
		subnet_send(&record);
}

/* --- a request ----------------------------------------------------------- */

/* A lookup says nothing of GIDs: it came to the first one. */
static int find_own_gid(const struct port *port, const struct cm_msg *msg, struct gid_entry *ret)
{
	int err;

	if (msg->hdr.attr_id == CM_ATTR_SIDR_REQ)
		return gid_by_index(port->device->verbs, port->port_num, 0, ret);
	err = gid_find_ib(&port->device->verbs, 1, &msg->req.primary.remote_gid, 0, ret);
	return err || ret->port_num != port->port_num ? -EINVAL : 0;
}

/* IBTA vol. 1, 12.7.11: the REQ's own LID is where data goes, unless it has none for us. */
static void take_lids(const struct cm_conn *conn, const struct cm_msg *msg, struct id_path *path)
{
	const struct cm_req_path *primary = &msg->req.primary;

	path->dlid = conn->path.dlid;
	if (msg->hdr.attr_id == CM_ATTR_SIDR_REQ)
		return;
	if (primary->local_lid && primary->local_lid != PERMISSIVE_LID)
		path->dlid = primary->local_lid;
	if (primary->remote_lid != PERMISSIVE_LID)
		path->slid = primary->remote_lid;
}

int infiniband_locate(const struct port *port, const struct cm_conn *conn, const struct cm_msg *msg,
		      struct id_path *path)
{
	bool is_lookup = msg->hdr.attr_id == CM_ATTR_SIDR_REQ;
	int err = find_own_gid(port, msg, &path->gid);

	if (err)
		return err;
	if (!is_lookup)
		set_peer(path, &msg->req.primary.local_gid);
	else if (conn->path.grh)
		set_peer(path, &conn->path.dgid);
	take_lids(conn, msg, path);
	path->is_given = !is_lookup;
	path->given = (struct ibv_sa_path_rec){ .dlid = htobe16(path->dlid),
						.slid = htobe16(path->slid),
						.reversible = 1 };
	memcpy(&path->given.dgid, &path->peer_gid, sizeof(path->peer_gid));
	path->given.sgid = path->gid.gid;
	path->given.hop_limit = is_lookup ? conn->path.hop_limit : msg->req.primary.hop_limit;
	return set_pkey(path, is_lookup ? msg->sidr_req.pkey : msg->req.pkey);
}

/* --- LIDs in messages and address vectors -------------------------------- */

/* What of our LID a port with several of them may choose. */
static uint8_t path_bits(const struct id_path *path)
{
	struct ibv_port_attr attr;

	if (!path->slid || ibv_query_port(path->gid.verbs, path->gid.port_num, &attr))
		return 0;
	return (uint8_t)(path->slid & ((1u << attr.lmc) - 1));
}

/* As the kernel: with one hop packets stay in the subnet, but between virtual functions of a device
 * only the GID tells them apart. */
static bool needs_grh(const struct id_path *path)
{
	return path->given.hop_limit > 0;
}

/* IBTA vol. 1, 8.3: packets need a hop for the router that they leave the subnet by. */
static bool leaves_subnet(const struct id_path *path)
{
	return path->given.hop_limit > 1;
}

void infiniband_mad_path(const struct id *id, struct mad_path *ret)
{
	const struct id_path *path = &id->path;

	*ret = (struct mad_path){ .pkey_index = path->pkey_index,
				  .dlid = path->dlid,
				  .sl = path->sl,
				  .path_bits = path_bits(path) };
	if (!needs_grh(path))
		return;
	ret->grh = true;
	ret->sgid_index = (uint8_t)path->gid.gid_index;
	ret->hop_limit = path->given.hop_limit;
	ret->traffic_class = path->traffic_class;
	ret->flow_label = path->flow_label;
	ret->dgid = infiniband_peer(id);
}

void infiniband_req_path(const struct id *id, struct cm_req_path *ret)
{
	if (leaves_subnet(&id->path))
		return; /* nobody outside knows our LIDs */
	ret->local_lid = id->path.slid;
	ret->remote_lid = id->path.dlid;
}

void infiniband_ah(const struct id *id, struct ibv_ah_attr *ret)
{
	const struct id_path *path = &id->path;
	struct mad_gid peer = infiniband_peer(id);

	memset(ret, 0, sizeof(*ret));
	ret->dlid = path->dlid;
	ret->sl = path->sl;
	ret->src_path_bits = path_bits(path);
	ret->static_rate = path->rate;
	ret->port_num = path->gid.port_num;
	if (!needs_grh(path))
		return;
	ret->is_global = 1;
	memcpy(&ret->grh.dgid, &peer, sizeof(peer));
	ret->grh.sgid_index = (uint8_t)path->gid.gid_index;
	ret->grh.flow_label = path->flow_label;
	ret->grh.hop_limit = path->given.hop_limit;
	ret->grh.traffic_class = path->traffic_class;
}
