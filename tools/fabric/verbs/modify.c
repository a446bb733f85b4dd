/* SPDX-License-Identifier: BSD-2-Clause */
/* ibv_modify_qp(): all attributes are checked before any is changed. */
#include <errno.h>

#include "tools/fabric/verbs/ack.h"
#include "tools/fabric/verbs/address.h"
#include "tools/fabric/verbs/carrier.h"
#include "tools/fabric/verbs/completion.h"
#include "tools/fabric/verbs/congestion.h"
#include "tools/fabric/verbs/context.h"
#include "tools/fabric/verbs/direct.h"
#include "tools/fabric/verbs/engine.h"
#include "tools/fabric/verbs/grant.h"
#include "tools/fabric/verbs/qp.h"
#include "tools/fabric/verbs/qp_state.h"
#include "tools/fabric/verbs/receive_queue.h"
#include "tools/fabric/verbs/transport.h"

#define RETRY_MAX 7
#define TIMER_MAX 31
#define ATTRS	  ((IBV_QP_DEST_QPN << 1) - 1) /* later ones are for raw packets */

static bool is_bad_port(const struct fab_context *context, const struct ibv_qp_attr *attr)
{
	return attr->port_num == 0 || attr->port_num > context->device->page->n_ports;
}

static bool is_bad_pkey(const struct fab_context *context, uint8_t port_num, uint16_t index)
{
	return index >= FAB_PKEYS || port_num == 0 ||
	       !context->device->page->port[port_num - 1].pkey[index];
}

static bool is_bad_path(const struct ibv_qp_attr *attr, int mask)
{
	return (mask & IBV_QP_PATH_MTU &&
		(attr->path_mtu < IBV_MTU_256 || attr->path_mtu > IBV_MTU_4096)) ||
	       (mask & IBV_QP_DEST_QPN && attr->dest_qp_num > FAB_PSN_MASK) ||
	       (mask & IBV_QP_MAX_QP_RD_ATOMIC && attr->max_rd_atomic > FAB_RD_MAX) ||
	       (mask & IBV_QP_MAX_DEST_RD_ATOMIC && attr->max_dest_rd_atomic > FAB_RD_MAX);
}

static bool is_bad_timer(const struct ibv_qp_attr *attr, int mask)
{
	return (mask & IBV_QP_TIMEOUT && attr->timeout > TIMER_MAX) ||
	       (mask & IBV_QP_MIN_RNR_TIMER && attr->min_rnr_timer > TIMER_MAX) ||
	       (mask & IBV_QP_RETRY_CNT && attr->retry_cnt > RETRY_MAX) ||
	       (mask & IBV_QP_RNR_RETRY && attr->rnr_retry > RETRY_MAX);
}

/* The alternate path. IBTA vol. 1, 11.2.5.2: it includes port and P_Key. */
static bool is_bad_alternate(struct fab_context *context, const struct ibv_qp_attr *attr)
{
	union ibv_gid sgid;

	return attr->alt_port_num != attr->alt_ah_attr.port_num || attr->alt_timeout > TIMER_MAX ||
	       address_check(context, &attr->alt_ah_attr, &sgid) ||
	       is_bad_pkey(context, attr->alt_port_num, attr->alt_pkey_index);
}

static int check_attr(struct fab_qp *qp, const struct ibv_qp_attr *attr, int mask)
{
	struct fab_context *context = context_of(qp);
	enum ibv_qp_state to = mask & IBV_QP_STATE ? attr->qp_state : qp->attr.qp_state;
	uint8_t port_num = mask & IBV_QP_PORT ? attr->port_num : qp->attr.port_num;

	if (mask & ~ATTRS)
		return EOPNOTSUPP;
	if (mask & IBV_QP_CUR_STATE && attr->cur_qp_state != qp->attr.qp_state)
		return EINVAL;
	if (!qp_state_allows(qp->init.qp_type, qp->attr.qp_state, to, (unsigned int)mask))
		return EINVAL;
	if (mask & IBV_QP_PORT && is_bad_port(context, attr))
		return EINVAL;
	if (mask & IBV_QP_PKEY_INDEX && is_bad_pkey(context, port_num, attr->pkey_index))
		return EINVAL;
	if (mask & IBV_QP_ALT_PATH && is_bad_alternate(context, attr))
		return EINVAL;
	return is_bad_path(attr, mask) || is_bad_timer(attr, mask) ? EINVAL : 0;
}

/* Sets the peer of a connected queue pair, and our GID towards it. */
static int set_address(struct fab_qp *qp, const struct ibv_ah_attr *attr, uint32_t dest_qpn)
{
	struct fab_context *context = context_of(qp);
	int err;

	address_hold(context->device, &qp->held, attr);
	err = address_check(context, attr, &qp->sgid);
	if (!err)
		err = context->carrier->find(context, attr, &qp->peer);
	if (err)
		return err;
	fab_folder_slot(&context->device->folder, qp->peer.host, dest_qpn >> FAB_SLOT_SHIFT,
			qp->path);
	return 0;
}

static void copy_attr(struct ibv_qp_attr *to, const struct ibv_qp_attr *from, int mask)
{
#define COPY(bit, field)  \
	if (mask & (bit)) \
	to->field = from->field
	COPY(IBV_QP_ACCESS_FLAGS, qp_access_flags);
	COPY(IBV_QP_PKEY_INDEX, pkey_index);
	COPY(IBV_QP_PORT, port_num);
	COPY(IBV_QP_QKEY, qkey);
	COPY(IBV_QP_AV, ah_attr);
	COPY(IBV_QP_PATH_MTU, path_mtu);
	COPY(IBV_QP_TIMEOUT, timeout);
	COPY(IBV_QP_RETRY_CNT, retry_cnt);
	COPY(IBV_QP_RNR_RETRY, rnr_retry);
	COPY(IBV_QP_MAX_QP_RD_ATOMIC, max_rd_atomic);
	COPY(IBV_QP_MAX_DEST_RD_ATOMIC, max_dest_rd_atomic);
	COPY(IBV_QP_MIN_RNR_TIMER, min_rnr_timer);
	COPY(IBV_QP_PATH_MIG_STATE, path_mig_state);
	COPY(IBV_QP_DEST_QPN, dest_qp_num);
	COPY(IBV_QP_ALT_PATH, alt_ah_attr);
	COPY(IBV_QP_ALT_PATH, alt_port_num);
	COPY(IBV_QP_ALT_PATH, alt_pkey_index);
	COPY(IBV_QP_ALT_PATH, alt_timeout);
	COPY(IBV_QP_EN_SQD_ASYNC_NOTIFY, en_sqd_async_notify);
#undef COPY
	if (mask & IBV_QP_RQ_PSN)
		to->rq_psn = from->rq_psn & FAB_PSN_MASK;
	if (mask & IBV_QP_SQ_PSN)
		to->sq_psn = from->sq_psn & FAB_PSN_MASK;
}

static void reset_qp(struct fab_qp *qp)
{
	ack_send(qp);
	list_remove(&qp->active);
	list_remove(&qp->unacked);
	qp_forget(qp);
	address_hold(context_of(qp)->device, &qp->held, NULL);
	qp->sq.head = 0;
	qp->sq.count = 0;
	qp->sq.at = 0;
	qp->sq.deadline_ns = 0;
	qp->sq.waits_for_rnr = false;
	receive_queue_reset(&qp->rq);
	qp_drop_message(qp);
	qp->has_reported_established = false;
	memset(&qp->attr, 0, sizeof(qp->attr));
}

static void set_psns(struct fab_qp *qp, int mask)
{
	if (mask & IBV_QP_RQ_PSN) {
		qp->responder.psn = qp->attr.rq_psn;
		qp->responder.msn = 0;
	}
	if (!(mask & IBV_QP_SQ_PSN))
		return;
	qp->sq.una = qp->attr.sq_psn;
	qp->sq.send_psn = qp->attr.sq_psn;
	qp->sq.post_psn = qp->attr.sq_psn;
	qp->sq.begun_psn = qp->attr.sq_psn;
	congestion_reset(qp);
}

static void change_qp(struct fab_qp *qp, const struct ibv_qp_attr *attr, int mask)
{
	enum ibv_qp_state to = mask & IBV_QP_STATE ? attr->qp_state : qp->attr.qp_state;

	grant_end(qp);
	direct_close(qp);
	copy_attr(&qp->attr, attr, mask);
	if (mask & IBV_QP_PATH_MTU)
		qp->payload_bytes =
			context_of(qp)->carrier->payload_bytes(context_of(qp), attr->path_mtu);
	set_psns(qp, mask);
	if (mask & (IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY)) {
		qp->sq.retries_left = qp->attr.retry_cnt;
		qp->sq.rnr_left = qp->attr.rnr_retry;
	}
	if (to == IBV_QPS_RESET)
		reset_qp(qp);
	if (to != IBV_QPS_SQD)
		qp->attr.en_sqd_async_notify = 0;
	if (to == IBV_QPS_ERR)
		qp_enter_error(qp, -1);
	if (qp->attr.qp_state == IBV_QPS_SQE) /* what failed took no PSN of the peer */
		qp->sq.post_psn = qp->sq.send_psn;
	qp->attr.qp_state = to;
	if (to == IBV_QPS_RTS)
		post_start(qp);
	requester_report_drained(qp);
}

int ibv_modify_qp(struct ibv_qp *ibv, struct ibv_qp_attr *attr, int mask)
{
	struct fab_context *context = to_context(ibv->context);
	struct fab_qp *qp = to_qp(ibv);
	uint32_t qpn;
	int err;

	context_command(ibv->context);
	pthread_mutex_lock(&context->lock);
	if (mask & IBV_QP_STATE &&
	    (attr->qp_state == IBV_QPS_ERR || attr->qp_state == IBV_QPS_RESET))
		context_catch_up(context);
	err = context->is_removed || !has_number(qp) ? EIO : check_attr(qp, attr, mask);
	qpn = mask & IBV_QP_DEST_QPN ? attr->dest_qp_num : qp->attr.dest_qp_num;
	if (!err && mask & IBV_QP_AV)
		err = set_address(qp, &attr->ah_attr, qpn);
	if (!err) {
		change_qp(qp, attr, mask);
		ibv->state = qp->attr.qp_state;
	}
	context_unlock(context);
	return command_return(err);
}
