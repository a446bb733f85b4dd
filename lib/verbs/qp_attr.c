/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Queue pair attributes from the parameters of a connection. rdma_init_qp_attr() is for programs
 * that move their queue pairs themselves, qp.c for the others.
 */
#include <errno.h>

#include "lib/api.h"
#include "lib/engine/engine.h"
#include "lib/verbs/qp.h"

/* Attributes by type: UC has neither half. XRC splits RC into an initiator and a target. */
static bool type_responds(enum ibv_qp_type type)
{
	return type == IBV_QPT_RC || type == IBV_QPT_XRC_RECV;
}

static bool type_initiates(enum ibv_qp_type type)
{
	return type == IBV_QPT_RC || type == IBV_QPT_XRC_SEND;
}

/* The Q_Key is fixed once a queue pair may use it. */
static uint32_t settle_qkey(struct id *id)
{
	if (!id->qkey)
		id->qkey = RDMA_UDP_QKEY;
	return id->qkey;
}

static unsigned int access_flags(const struct id *id)
{
	unsigned int flags = IBV_ACCESS_REMOTE_WRITE;

	if (id->conn->responder_resources)
		flags |= IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC |
			 id->attached->flush_access;
	return flags;
}

static void fill_init(const struct id *id, struct ibv_qp_attr *attr, int *mask)
{
	attr->pkey_index = id->path.pkey_index;
	attr->port_num = id->path.gid.port_num;
	*mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT;
	if (id_is_datagram(id)) {
		attr->qkey = id->qkey;
		*mask |= IBV_QP_QKEY;
		return;
	}
	attr->qp_access_flags = id->conn ? access_flags(id) : 0;
	*mask |= IBV_QP_ACCESS_FLAGS;
}

static void fill_rtr(const struct id *id, struct ibv_qp_attr *attr, int *mask)
{
	const struct cm_conn *conn = id->conn;

	path_to_ah(&id->path, &attr->ah_attr);
	attr->path_mtu = id->path.mtu;
	attr->dest_qp_num = conn->remote_qpn;
	attr->rq_psn = id->starting_psn;
	*mask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
	if (!type_responds(id_transport(id)))
		return;
	attr->max_dest_rd_atomic = conn->responder_resources;
	attr->min_rnr_timer = 0;
	*mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
	if (!id->alternate)
		return;
	path_to_ah(id->alternate, &attr->alt_ah_attr);
	attr->alt_port_num = id->alternate->gid.port_num;
	attr->alt_pkey_index = id->alternate->pkey_index;
	attr->alt_timeout = id->alternate->packet_life_time + 1;
	*mask |= IBV_QP_ALT_PATH;
}

static void fill_rts(const struct id *id, struct ibv_qp_attr *attr, int *mask)
{
	const enum ibv_qp_type type = id_transport(id);
	const struct cm_conn *conn = id->conn;

	attr->sq_psn = conn->remote_starting_psn;
	*mask = IBV_QP_STATE | IBV_QP_SQ_PSN;
	if (id->alternate) { /* may migrate from then on */
		attr->path_mig_state = IBV_MIG_REARM;
		*mask |= IBV_QP_PATH_MIG_STATE;
	}
	if (type_initiates(type)) {
		attr->retry_cnt = conn->retry_count;
		attr->rnr_retry = conn->rnr_retry_count;
		attr->max_rd_atomic = conn->initiator_depth;
		*mask |= IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
	}
	if (type_initiates(type) || type_responds(type)) {
		attr->timeout = id->option.has_ack_timeout ? id->option.ack_timeout
							   : conn->local_ack_timeout;
		*mask |= IBV_QP_TIMEOUT;
	}
}

/* States of the connection in which the attributes are known. */
#define STATE_BIT(name) (1u << CM_##name)

static const unsigned int begun = STATE_BIT(REQ_SENT) | STATE_BIT(MRA_REQ_RCVD) |
				  STATE_BIT(REP_RCVD) | STATE_BIT(MRA_REP_SENT) |
				  STATE_BIT(REQ_RCVD) | STATE_BIT(MRA_REQ_SENT) |
				  STATE_BIT(REP_SENT) | STATE_BIT(MRA_REP_RCVD) |
				  STATE_BIT(ESTABLISHED);
static const unsigned int agreed = STATE_BIT(REP_RCVD) | STATE_BIT(MRA_REP_SENT) |
				   STATE_BIT(REQ_RCVD) | STATE_BIT(MRA_REQ_SENT) |
				   STATE_BIT(REP_SENT) | STATE_BIT(MRA_REP_RCVD) |
				   STATE_BIT(ESTABLISHED);

typedef void fill_fn(const struct id *id, struct ibv_qp_attr *attr, int *mask);

static const struct {
	fill_fn *fill;
	const unsigned int *legal;
} moves[] = {
	[IBV_QPS_INIT] = { fill_init, &begun },
	[IBV_QPS_RTR] = { fill_rtr, &agreed },
	[IBV_QPS_RTS] = { fill_rts, &agreed },
};

/* Before connecting, returns the attributes of INIT for any target. */
static int fill_attr(struct id *id, struct ibv_qp_attr *attr, int *ret_mask)
{
	enum ibv_qp_state state = attr->qp_state;

	if (!id->path.gid.verbs || state > IBV_QPS_ERR)
		return -EINVAL;
	if (id->path.pkey_index == PATH_NO_PKEY)
		return -ENOENT;
	if (id->state == ID_LISTEN && !id_is_datagram(id))
		return -EINVAL;
	/* The loopback has no broadcast group, whose Q_Key it would be. */
	if (id->claim.ps == RDMA_PS_IPOIB && id->path.loopback)
		return -ENODEV;
	if (id_is_datagram(id))
		settle_qkey(id);
	if (!id->conn || id_is_datagram(id)) {
		fill_init(id, attr, ret_mask);
		return 0;
	}
	if (state >= sizeof(moves) / sizeof(moves[0]) || !moves[state].fill ||
	    !(*moves[state].legal & 1u << id->conn->state))
		return -EINVAL;
	moves[state].fill(id, attr, ret_mask);
	return 0;
}

/* RoCE has one P_Key. */
static void add_access(const struct id *id, struct ibv_qp_attr *attr, int *ret_mask)
{
	attr->qp_access_flags = access_flags(id);
	*ret_mask |= IBV_QP_ACCESS_FLAGS;
	if (id->path.gid.type != IBV_GID_TYPE_IB)
		return;
	attr->pkey_index = id->path.pkey_index;
	*ret_mask |= IBV_QP_PKEY_INDEX;
}

int qp_attr_fill(struct id *id, struct ibv_qp_attr *attr, bool with_access, int *ret_mask)
{
	struct ibv_qp_attr filled = { .qp_state = attr->qp_state };
	int err = attr->qp_state == IBV_QPS_RTR ? id_follow_address(id) : 0;

	if (err)
		return err;
	engine_lock();
	err = fill_attr(id, &filled, ret_mask);
	if (!err && with_access && id->conn && !id_is_datagram(id))
		add_access(id, &filled, ret_mask);
	engine_unlock();
	if (!err)
		*attr = filled;
	return err;
}

uint32_t qp_qkey(struct id *id)
{
	uint32_t qkey;

	engine_lock();
	qkey = settle_qkey(id);
	engine_unlock();
	return qkey;
}

static int init_qp_attr(struct rdma_cm_id *id, struct ibv_qp_attr *qp_attr, int *qp_attr_mask)
{
	int mask = 0;
	int err = qp_attr && qp_attr_mask ? id_check(id) : -EINVAL;

	if (!err)
		err = qp_attr_fill(id_of(id), qp_attr, false, &mask);
	if (!err)
		*qp_attr_mask = mask;
	return err;
}

int rdma_init_qp_attr(struct rdma_cm_id *id, struct ibv_qp_attr *qp_attr, int *qp_attr_mask)
{
	return api_return(init_qp_attr(id, qp_attr, qp_attr_mask));
}
