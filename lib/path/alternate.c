/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Alternate paths of requests: see alternate.h.
 */
#include "lib/path/alternate.h"

#include <errno.h>
#include <string.h>

#include "lib/path/infiniband.h"

static uint8_t path_bits(const struct gid_entry *gid, uint16_t own_lid)
{
	struct ibv_port_attr attr;

	if (ibv_query_port(gid->verbs, gid->port_num, &attr))
		return 0;
	return (uint8_t)(own_lid & ((1u << attr.lmc) - 1));
}

/* The REQ's local is the sender's, and its remote is ours. */
static void fill_ah(const struct gid_entry *own, const struct cm_req_path *req,
		    struct ibv_ah_attr *ret)
{
	*ret = (struct ibv_ah_attr){ .dlid = req->local_lid,
				     .sl = req->sl,
				     .static_rate = req->packet_rate,
				     .src_path_bits = path_bits(own, req->remote_lid),
				     .port_num = own->port_num };
	if (!req->hop_limit)
		return;
	ret->is_global = 1;
	memcpy(&ret->grh.dgid, &req->local_gid, sizeof(ret->grh.dgid));
	ret->grh.sgid_index = (uint8_t)own->gid_index;
	ret->grh.flow_label = req->flow_label;
	ret->grh.hop_limit = req->hop_limit;
	ret->grh.traffic_class = req->traffic_class;
}

int alternate_take(const struct port *port, const struct cm_req *req, struct id_path *path)
{
	struct id_alternate *ret = &path->alternate;
	struct gid_entry own;
	int err;

	if (!req->alternate.local_lid)
		return 0;
	if (gid_find_ib(&port->device->verbs, 1, &req->alternate.remote_gid, 0, &own))
		return -EINVAL;
	err = device_pkey_index(&own, path->pkey, &ret->pkey_index);
	if (err)
		return err;
	fill_ah(&own, &req->alternate, &ret->ah);
	ret->timeout = req->alternate.local_ack_timeout;
	ret->is_known = true;
	return 0;
}

void alternate_fill(const struct id_path *path, struct ibv_qp_attr *attr, int *mask)
{
	if (!path->alternate.is_known)
		return;
	attr->alt_ah_attr = path->alternate.ah;
	attr->alt_port_num = path->alternate.ah.port_num;
	attr->alt_pkey_index = path->alternate.pkey_index;
	attr->alt_timeout = path->alternate.timeout;
	*mask |= IBV_QP_ALT_PATH;
}

void alternate_arm(const struct id_path *path, struct ibv_qp_attr *attr, int *mask)
{
	if (!path->alternate.is_known)
		return;
	attr->path_mig_state = IBV_MIG_REARM;
	*mask |= IBV_QP_PATH_MIG_STATE;
}
