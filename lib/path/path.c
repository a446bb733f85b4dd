/* SPDX-License-Identifier: BSD-2-Clause */
/* Paths, as far as RoCE and InfiniBand are alike: see path.h. */
#include "lib/path/path.h"

#include <endian.h>

#include "cm/retry.h"
#include "lib/path/ops.h"

#define PERMISSIVE_LID	   0xffff
#define EXACTLY		   2 /* path record selector */
#define PREFERENCE_DEFAULT 0x2b
#define SIX_BITS	   0x3f /* a path record's packet life time */

static const struct path_ops *const link_layers[] = {
	[IBV_GID_TYPE_IB] = &path_infiniband,
	[IBV_GID_TYPE_ROCE_V1] = &path_roce,
	[IBV_GID_TYPE_ROCE_V2] = &path_roce,
};

static const struct path_ops *ops_of(const struct path *path)
{
	return link_layers[path->gid.type];
}

/* --- completion in steps -------------------------------------------------- */

void path_ask_port(const struct path *path)
{
	const struct path_ops *ops = ops_of(path);

	if (ops->ask)
		ops->ask(path);
}

int path_set_peer(struct path *path, const union addr *peer)
{
	return path->loopback ? 0 : ops_of(path)->set_peer(path, peer);
}

int path_complete(struct path *path, const struct path_query *query, struct sa_msg *ret_question)
{
	return ops_of(path)->complete(path, query, ret_question);
}

void path_take_record(struct path *path, const struct sa_path *record)
{
	const struct path_ops *ops = ops_of(path);

	path->dgid = record->dgid;
	memcpy(&path->sgid, &record->sgid, sizeof(path->sgid));
	path->flow_label = record->flow_label;
	path->pkey = record->pkey;
	path->hop_limit = record->hop_limit;
	path->traffic_class = record->traffic_class;
	path->sl = record->sl;
	path->mtu = record->mtu;
	path->rate = record->rate;
	path->packet_life_time = record->packet_life_time;
	path->is_reversible = record->reversible;
	if (ops->take_lids)
		ops->take_lids(path, record->slid, record->dlid);
}

/* --- paths of requests ---------------------------------------------------- */

/* The local end of the REQ's path is the sender's. */
static void take_req_path(struct path *path, const struct cm_req_path *req)
{
	path->dgid = req->local_gid;
	path->flow_label = req->flow_label;
	path->hop_limit = req->hop_limit;
	path->traffic_class = req->traffic_class;
	path->sl = req->sl;
	path->rate = req->packet_rate;
	path->packet_life_time = req->local_ack_timeout ? req->local_ack_timeout - 1 : 0;
	path->is_reversible = true;
}

void path_prepare(struct port *port)
{
	const struct path_ops *ops = port->is_infiniband ? &path_infiniband : &path_roce;

	net_catch_up(); /* with changes of addresses, which GIDs follow */
	gid_refresh(port->device->verbs);
	if (ops->prepare)
		ops->prepare(port);
}

int path_of_request(struct port *port, const struct cm_conn *conn, const struct cm_msg *msg,
		    struct path *ret)
{
	int err;

	*ret = (struct path){ .port = port };
	/* On InfiniBand, GID 0 exists regardless of IP addresses. */
	if (gid_by_index(port->device->verbs, port->port_num, 0, &ret->gid))
		ret->gid.type = IBV_GID_TYPE_ROCE_V2;
	if (msg->hdr.attr_id == CM_ATTR_SIDR_REQ) {
		ret->pkey = msg->sidr_req.pkey;
	} else {
		take_req_path(ret, &msg->req.primary);
		ret->pkey = msg->req.pkey;
		ret->mtu = msg->req.path_mtu;
	}
	err = ops_of(ret)->read(ret, conn, msg);
	ret->sgid = ret->gid.gid;
	return err;
}

bool path_is_native(const struct path *path)
{
	return ops_of(path)->is_native;
}

int path_find_return_route(struct path *path, union addr *us, union addr *peer)
{
	return ops_of(path)->find_return_route(path, us, peer);
}

int path_of_alternate(const struct path *primary, const struct cm_req *req, struct path *ret)
{
	const struct path_ops *ops = ops_of(primary);

	*ret = (struct path){ .pkey = primary->pkey, .mtu = primary->mtu };
	if (!req->alternate.local_lid)
		return 0;
	if (!ops->read_alternate)
		return -EINVAL;
	take_req_path(ret, &req->alternate);
	return ops->read_alternate(ret, primary, &req->alternate);
}

/* --- conversions ----------------------------------------------------------- */

int path_check_pkey(const struct path *path)
{
	return ops_of(path)->check_pkey(path);
}

int path_follow(const struct path *path, struct gid_entry *ret)
{
	const struct path_ops *ops = ops_of(path);

	*ret = path->gid;
	return ops->follow ? ops->follow(ret) : 0;
}

bool path_is_in_place(const struct path *path)
{
	return !ops_of(path)->follow || gid_is_in_place(&path->gid);
}

void path_to_mad(const struct path *path, struct mad_path *ret)
{
	ops_of(path)->to_mad(path, ret);
}

/*
 * LIDs have no meaning beyond the subnet, which RoCE over IP leaves unless the program sets the hop
 * limit otherwise.
 */
void path_to_req(const struct path *path, uint8_t ca_ack_delay, struct cm_req_path *ret)
{
	bool is_local = path->hop_limit <= 1;

	*ret = (struct cm_req_path){
		.local_lid = is_local ? path->slid : PERMISSIVE_LID,
		.remote_lid = is_local ? path->dlid : PERMISSIVE_LID,
		.remote_gid = path->dgid,
		.flow_label = path->flow_label,
		.packet_rate = path->rate,
		.traffic_class = path->traffic_class,
		.hop_limit = path->hop_limit,
		.sl = path->sl,
		.subnet_local = is_local,
		.local_ack_timeout = cm_ack_timeout(ca_ack_delay, path->packet_life_time),
	};
	memcpy(&ret->local_gid, &path->sgid, sizeof(ret->local_gid));
}

void path_to_ah(const struct path *path, struct ibv_ah_attr *ret)
{
	ops_of(path)->to_ah(path, ret);
}

void path_to_record(const struct path *path, struct ibv_sa_path_rec *ret)
{
	*ret = (struct ibv_sa_path_rec){
		.sgid = path->sgid,
		.dlid = htobe16(path->dlid),
		.slid = htobe16(path->slid),
		.flow_label = htobe32(path->flow_label),
		.hop_limit = path->hop_limit,
		.traffic_class = path->traffic_class,
		.reversible = path->is_reversible,
		.numb_path = 1,
		.pkey = htobe16(path->pkey),
		.sl = path->sl,
		.mtu_selector = EXACTLY,
		.mtu = path->mtu,
		.rate_selector = EXACTLY,
		.rate = path->rate,
		.packet_life_time_selector = EXACTLY,
		.packet_life_time = path->packet_life_time & SIX_BITS,
		.preference = PREFERENCE_DEFAULT,
	};
	memcpy(&ret->dgid, &path->dgid, sizeof(ret->dgid));
}

void path_fill_ib_addr(const struct path *path, struct rdma_ib_addr *io)
{
	ops_of(path)->fill_ib_addr(path, io);
}

bool path_revalidate(const struct path *path, struct portd_record *ret)
{
	const struct path_ops *ops = ops_of(path);

	return path->port && ops->revalidate && ops->revalidate(path, ret);
}
