/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Queue pairs that the library makes and moves: rdma_create_qp(), rdma_create_qp_ex(),
 * rdma_destroy_qp(). See qp.h.
 */
#include "lib/qp.h"

#include <errno.h>
#include <string.h>

#include "lib/api.h"
#include "lib/engine.h"
#include "lib/log.h"

/* --- moves --------------------------------------------------------------- */

static int modify(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
	int err = ibv_modify_qp(qp, attr, mask);

	if (err)
		log_warn("queue pair 0x%06x cannot be moved to state %d: %s", qp->qp_num,
			 attr->qp_state, strerror(err));
	return -err;
}

static int move(struct id *id, struct ibv_qp *qp, enum ibv_qp_state state)
{
	struct ibv_qp_attr attr = { .qp_state = state };
	int mask = 0;
	int err = qp_attr_fill(id, &attr, &mask);

	return err ? err : modify(qp, &attr, mask);
}

/* What the peer may do was not known when the queue pair was made: INIT to RTR may set it, which
 * saves a second move to INIT. */
static int move_to_rtr(struct id *id, struct ibv_qp *qp)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RTR };
	int mask = 0;
	int err = qp_attr_fill_with_access(id, &attr, &mask);

	return err ? err : modify(qp, &attr, mask);
}

int qp_to_rts(struct id *id)
{
	int err = move_to_rtr(id, id->pub.qp);

	return err ? err : move(id, id->pub.qp, IBV_QPS_RTS);
}

int qp_to_error(struct id *id)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };

	return id->pub.qp ? modify(id->pub.qp, &attr, IBV_QP_STATE) : 0;
}

/* A datagram queue pair needs no peer to be ready. */
static int start_ud(struct id *id, struct ibv_qp *qp)
{
	struct ibv_qp_attr rtr = { .qp_state = IBV_QPS_RTR };
	struct ibv_qp_attr rts = { .qp_state = IBV_QPS_RTS, .sq_psn = 0 };
	int err = move(id, qp, IBV_QPS_INIT);

	if (!err)
		err = modify(qp, &rtr, IBV_QP_STATE);
	if (!err)
		err = modify(qp, &rts, IBV_QP_STATE | IBV_QP_SQ_PSN);
	return err;
}

/* --- completion queues --------------------------------------------------- */

/* Inline functions of rdma_verbs.h rely on cq_context and on a channel of its own. */
static int make_cq(struct id *id, uint32_t entries, struct ibv_comp_channel **ret_channel,
		   struct ibv_cq **ret_cq)
{
	struct ibv_comp_channel *channel = ibv_create_comp_channel(id->pub.verbs);
	struct ibv_cq *cq;
	int err;

	if (!channel)
		return errno ? -errno : -ENOMEM;
	cq = ibv_create_cq(id->pub.verbs, (int)entries, &id->pub, channel, 0);
	if (!cq) {
		err = errno ? -errno : -ENOMEM;
		ibv_destroy_comp_channel(channel);
		return err;
	}
	*ret_channel = channel;
	*ret_cq = cq;
	return 0;
}

static int make_cqs(struct id *id, struct ibv_qp_init_attr_ex *attr)
{
	struct rdma_cm_id *pub = &id->pub;
	int err = 0;

	if (!attr->recv_cq && !pub->recv_cq && attr->cap.max_recv_wr)
		err = make_cq(id, attr->cap.max_recv_wr, &pub->recv_cq_channel, &pub->recv_cq);
	if (!err && !attr->send_cq && !pub->send_cq && attr->cap.max_send_wr)
		err = make_cq(id, attr->cap.max_send_wr, &pub->send_cq_channel, &pub->send_cq);
	if (err)
		return err;
	if (!attr->recv_cq)
		attr->recv_cq = pub->recv_cq;
	if (!attr->send_cq)
		attr->send_cq = pub->send_cq;
	return 0;
}

static void drop_cqs(struct rdma_cm_id *id)
{
	if (id->recv_cq) {
		ibv_destroy_cq(id->recv_cq);
		if (id->send_cq == id->recv_cq)
			id->send_cq = NULL;
	}
	if (id->recv_cq_channel) {
		ibv_destroy_comp_channel(id->recv_cq_channel);
		if (id->send_cq_channel == id->recv_cq_channel)
			id->send_cq_channel = NULL;
	}
	if (id->send_cq)
		ibv_destroy_cq(id->send_cq);
	if (id->send_cq_channel)
		ibv_destroy_comp_channel(id->send_cq_channel);
	id->recv_cq = NULL;
	id->recv_cq_channel = NULL;
	id->send_cq = NULL;
	id->send_cq_channel = NULL;
}

/* --- the API ------------------------------------------------------------- */

static int check(const struct rdma_cm_id *id, const struct ibv_qp_init_attr_ex *attr)
{
	if (id->qp || !id->verbs)
		return -EINVAL;
	if (attr->pd->context != id->verbs)
		return -EINVAL;
	if (id->recv_cq && attr->recv_cq && attr->recv_cq != id->recv_cq)
		return -EINVAL;
	if (id->send_cq && attr->send_cq && attr->send_cq != id->send_cq)
		return -EINVAL;
	return 0;
}

static int make_qp(struct id *id, struct ibv_qp_init_attr_ex *attr)
{
	struct ibv_qp *qp;
	int err;

	if (id->pub.srq && !attr->srq)
		attr->srq = id->pub.srq;
	qp = ibv_create_qp_ex(id->pub.verbs, attr);
	if (!qp)
		return errno ? -errno : -ENOMEM;
	err = id->pub.qp_type == IBV_QPT_UD ? start_ud(id, qp) : move(id, qp, IBV_QPS_INIT);
	if (err) {
		ibv_destroy_qp(qp);
		return err;
	}
	id->pub.pd = qp->pd;
	id->pub.qp = qp;
	return 0;
}

static int create_qp(struct id *id, struct ibv_qp_init_attr_ex *attr)
{
	int err;

	if (!(attr->comp_mask & IBV_QP_INIT_ATTR_PD) || !attr->pd) {
		attr->comp_mask |= IBV_QP_INIT_ATTR_PD;
		attr->pd = id->pub.pd;
	}
	if (!attr->pd)
		return -EINVAL;
	err = check(&id->pub, attr);
	if (!err)
		err = make_cqs(id, attr);
	if (!err)
		err = make_qp(id, attr);
	if (err && !id->pub.qp && !id->pub.srq)
		drop_cqs(&id->pub);
	return err;
}

int rdma_create_qp_ex(struct rdma_cm_id *id, struct ibv_qp_init_attr_ex *attr)
{
	if (!id || !attr)
		return api_return(-EINVAL);
	return api_return(create_qp(id_of(id), attr));
}

int rdma_create_qp(struct rdma_cm_id *id, struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	struct ibv_qp_init_attr_ex ex = { 0 };
	int err;

	if (!id || !attr)
		return api_return(-EINVAL);
	memcpy(&ex, attr, sizeof(*attr));
	ex.comp_mask = IBV_QP_INIT_ATTR_PD;
	ex.pd = pd;
	err = api_return(create_qp(id_of(id), &ex));
	memcpy(attr, &ex, sizeof(*attr));
	return err;
}

void rdma_destroy_qp(struct rdma_cm_id *id)
{
	ibv_destroy_qp(id->qp);
	id->qp = NULL;
	drop_cqs(id);
}
