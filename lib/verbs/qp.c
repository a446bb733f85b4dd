/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Queue pairs that the library creates and moves: rdma_create_qp(), rdma_create_qp_ex(),
 * rdma_destroy_qp(). See qp.h.
 */
#include "lib/verbs/qp.h"

#include <errno.h>
#include <string.h>

#include "base/command.h"
#include "lib/api.h"
#include "lib/diag/lock_order.h"
#include "lib/diag/warning.h"
#include "lib/verbs/cq.h"
#include "lib/verbs/ece.h"

/* --- transitions ---------------------------------------------------------- */

static int modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
	int err;

	command_check();
	err = ibv_modify_qp(qp, attr, mask);
	if (err)
		warning_of_queue_pair(qp->qp_num, attr->qp_state, -err);
	return -err;
}

/*
 * The peer's access rights were unknown when the queue pair was created, and perhaps the path's
 * P_Key: set them on INIT to RTR, which saves a second transition to INIT.
 */
static int move_qp(struct id *id, struct ibv_qp *qp, enum ibv_qp_state state)
{
	struct ibv_qp_attr attr = { .qp_state = state };
	int mask = 0;
	int err = qp_attr_fill(id, &attr, state == IBV_QPS_RTR, &mask);

	return err ? err : modify_qp(qp, &attr, mask);
}

/* The address may have gone while the queue pair was moved with its index. */
static int move_to_rtr(struct id *id)
{
	int err = move_qp(id, id->pub.qp, IBV_QPS_RTR);

	return err || path_is_in_place(&id->path) ? err : -ENODATA;
}

int qp_to_rts(struct id *id)
{
	int err = move_to_rtr(id);

	return err ? err : move_qp(id, id->pub.qp, IBV_QPS_RTS);
}

int qp_to_error(struct id *id)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };

	return id->pub.qp ? modify_qp(id->pub.qp, &attr, IBV_QP_STATE) : 0;
}

/* A datagram queue pair needs no peer to become ready. */
static int start_ud(struct id *id, struct ibv_qp *qp)
{
	struct ibv_qp_attr rtr = { .qp_state = IBV_QPS_RTR };
	struct ibv_qp_attr rts = { .qp_state = IBV_QPS_RTS, .sq_psn = 0 };
	int err = move_qp(id, qp, IBV_QPS_INIT);

	if (!err)
		err = modify_qp(qp, &rtr, IBV_QP_STATE);
	if (!err)
		err = modify_qp(qp, &rts, IBV_QP_STATE | IBV_QP_SQ_PSN);
	return err;
}

int qp_restart(struct id *id)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RESET };
	int err = modify_qp(id->pub.qp, &attr, IBV_QP_STATE);

	return err ? err : start_ud(id, id->pub.qp);
}

/* --- creation -------------------------------------------------------------- */

/* An XRC target shares the completion queue of the id's shared receive queue, which outlives it. */
static void drop_cqs(struct rdma_cm_id *id)
{
	if (id->qp_type != IBV_QPT_XRC_RECV || !id->srq)
		cq_drop(id);
}

static int check_attr(const struct rdma_cm_id *id, const struct ibv_qp_init_attr_ex *attr)
{
	if (!attr->pd || attr->pd->context != id->verbs)
		return -EINVAL;
	if (id->recv_cq && attr->recv_cq && attr->recv_cq != id->recv_cq)
		return -EINVAL;
	if (id->send_cq && attr->send_cq && attr->send_cq != id->send_cq)
		return -EINVAL;
	return 0;
}

static int add_xrcd(struct id *id, struct ibv_qp_init_attr_ex *attr)
{
	int err = 0;

	if (id->pub.qp_type != IBV_QPT_XRC_RECV)
		return 0;
	if (!(attr->comp_mask & IBV_QP_INIT_ATTR_XRCD) || !attr->xrcd)
		err = device_xrcd(id->attached, &attr->xrcd);
	if (!err)
		attr->comp_mask |= IBV_QP_INIT_ATTR_XRCD;
	return err;
}

static int add_cqs(struct rdma_cm_id *id, struct ibv_qp_init_attr_ex *attr)
{
	int err = cq_make(id, attr->send_cq ? 0 : attr->cap.max_send_wr,
			  attr->recv_cq ? 0 : attr->cap.max_recv_wr);

	if (err)
		return err;
	if (!attr->recv_cq)
		attr->recv_cq = id->recv_cq;
	if (!attr->send_cq)
		attr->send_cq = id->send_cq;
	return 0;
}

static int start_qp(struct id *id, struct ibv_qp *qp)
{
	int err = ece_begin(id, qp);

	if (!err)
		err = id->pub.qp_type == IBV_QPT_UD ? start_ud(id, qp)
						    : move_qp(id, qp, IBV_QPS_INIT);
	return err ? err : ece_ask(id, qp);
}

static int make_qp(struct id *id, struct ibv_qp_init_attr_ex *attr)
{
	struct ibv_qp *qp;
	int err;

	if (id->pub.srq && !attr->srq)
		attr->srq = id->pub.srq;
	command_check();
	errno = 0;
	qp = ibv_create_qp_ex(id->pub.verbs, attr);
	if (!qp) {
		err = errno ? -errno : -ENOMEM;
		warning_of_no_queue_pair(&attr->cap, &id->attached->attr, err);
		return err;
	}
	err = start_qp(id, qp);
	if (err) {
		ibv_destroy_qp(qp);
		return err;
	}
	id->pub.pd = qp->pd;
	id->pub.qp = qp;
	return 0;
}

/* --- the API ------------------------------------------------------------- */

static int create_qp(struct id *id, struct ibv_qp_init_attr_ex *attr)
{
	int err;

	if (!attr || id->pub.qp || !id->attached)
		return -EINVAL;
	if (!(attr->comp_mask & IBV_QP_INIT_ATTR_PD) || !attr->pd) {
		attr->comp_mask |= IBV_QP_INIT_ATTR_PD;
		attr->pd = id->pub.pd;
	}
	err = check_attr(&id->pub, attr);
	if (!err)
		err = add_xrcd(id, attr);
	if (err)
		return err;
	err = add_cqs(&id->pub, attr);
	if (!err)
		err = make_qp(id, attr);
	if (err)
		drop_cqs(&id->pub);
	return err;
}

int rdma_create_qp_ex(struct rdma_cm_id *id, struct ibv_qp_init_attr_ex *attr)
{
	return api_return(id_check(id) ?: create_qp(id_of(id), attr));
}

int rdma_create_qp(struct rdma_cm_id *id, struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	struct ibv_qp_init_attr_ex ex = { 0 };
	int err;

	if (!attr)
		return api_return(-EINVAL);
	memcpy(&ex, attr, sizeof(*attr));
	ex.comp_mask = IBV_QP_INIT_ATTR_PD;
	ex.pd = pd;
	err = api_return(id_check(id) ?: create_qp(id_of(id), &ex));
	memcpy(attr, &ex, sizeof(*attr));
	return err;
}

void rdma_destroy_qp(struct rdma_cm_id *id)
{
	int cancel_state;
	struct ibv_qp *qp;

	if (id_check(id))
		return;
	cancel_state = api_enter();
	/* Released while the verb waits until the queue pair's events are acknowledged. */
	lock_take(&id_of(id)->qp_lock, LOCK_QP);
	qp = id->qp;
	id->qp = NULL;
	lock_give(&id_of(id)->qp_lock, LOCK_QP);
	command_check();
	ibv_destroy_qp(qp);
	drop_cqs(id);
	api_leave(cancel_state);
}
