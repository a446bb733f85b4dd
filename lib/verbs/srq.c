/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Shared receive queues of ids: rdma_create_srq(), rdma_create_srq_ex(), rdma_destroy_srq(). Queue
 * pairs created later use the id's, see qp.c.
 */
#include <errno.h>
#include <rdma/rdma_verbs.h>
#include <string.h>

#include "base/command.h"
#include "lib/api.h"
#include "lib/device/device.h"
#include "lib/id/id.h"
#include "lib/verbs/cq.h"

/* An XRC queue has its own completion queue, for all queue pairs that receive through it. */
static int add_xrc(struct id *id, struct ibv_srq_init_attr_ex *attr)
{
	int err = 0;

	if (!(attr->comp_mask & IBV_SRQ_INIT_ATTR_XRCD) || !attr->xrcd)
		err = device_xrcd(id->attached, &attr->xrcd);
	if (err)
		return err;
	attr->comp_mask |= IBV_SRQ_INIT_ATTR_XRCD;
	if (!(attr->comp_mask & IBV_SRQ_INIT_ATTR_CQ) || !attr->cq) {
		err = cq_make(&id->pub, 0, attr->attr.max_wr);
		if (err)
			return err;
		attr->cq = id->pub.recv_cq;
	}
	attr->comp_mask |= IBV_SRQ_INIT_ATTR_CQ;
	return 0;
}

static int make_srq(struct id *id, struct ibv_srq_init_attr_ex *attr)
{
	struct ibv_srq *srq;

	command_check();
	errno = 0;
	srq = ibv_create_srq_ex(id->pub.verbs, attr);
	if (!srq)
		return errno ? -errno : -ENOMEM;
	if (!id->pub.pd)
		id->pub.pd = attr->pd;
	id->pub.srq = srq;
	return 0;
}

static int create_srq(struct id *id, struct ibv_srq_init_attr_ex *attr)
{
	const bool had_cqs = id->pub.recv_cq || id->pub.send_cq;
	int err = 0;

	if (!(attr->comp_mask & IBV_SRQ_INIT_ATTR_TYPE))
		return -EINVAL;
	if (!(attr->comp_mask & IBV_SRQ_INIT_ATTR_PD) || !attr->pd)
		attr->pd = id->pub.pd;
	attr->comp_mask |= IBV_SRQ_INIT_ATTR_PD;
	if (!attr->pd)
		return -EINVAL;
	if (attr->srq_type == IBV_SRQT_XRC)
		err = id->attached ? add_xrc(id, attr) : -EINVAL;
	if (!err)
		err = make_srq(id, attr);
	if (err && !had_cqs)
		cq_drop(&id->pub);
	return err;
}

int rdma_create_srq_ex(struct rdma_cm_id *id, struct ibv_srq_init_attr_ex *attr)
{
	if (!attr)
		return api_return(-EINVAL);
	return api_return(id_check(id) ?: create_srq(id_of(id), attr));
}

int rdma_create_srq(struct rdma_cm_id *id, struct ibv_pd *pd, struct ibv_srq_init_attr *attr)
{
	struct ibv_srq_init_attr_ex ex = { 0 };
	int err;

	if (!id || !attr)
		return api_return(-EINVAL);
	memcpy(&ex, attr, sizeof(*attr));
	ex.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD;
	ex.srq_type = id->qp_type == IBV_QPT_XRC_RECV ? IBV_SRQT_XRC : IBV_SRQT_BASIC;
	ex.pd = pd;
	err = api_return(id_check(id) ?: create_srq(id_of(id), &ex));
	memcpy(attr, &ex, sizeof(*attr));
	return err;
}

void rdma_destroy_srq(struct rdma_cm_id *id)
{
	int cancel_state;

	if (id_check(id))
		return;
	cancel_state = api_enter();
	command_check();
	ibv_destroy_srq(id->srq);
	id->srq = NULL;
	cq_drop(id);
	api_leave(cancel_state);
}
