/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * See rig.h.
 */
#include "tests/fabric/rig.h"

#include <check.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define WAIT_MS	  30000
#define NONE_MS	  20
#define GID_INDEX 1
#define TIMEOUT	  9 /* 2 ms */

static int64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000LL + now.tv_nsec / 1000000;
}

static unsigned int access_of(const struct rig_config *config)
{
	return config->access ? config->access : RIG_ALL_ACCESS;
}

static struct ibv_qp_attr attr_of(struct rig *rig, const struct end *peer,
				  const struct rig_config *config)
{
	struct ibv_qp_attr attr = {
		.port_num = config->port_num ? config->port_num : 1,
		.qkey = RIG_QKEY,
		.qp_access_flags = access_of(config),
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = peer->qp->qp_num,
		.max_rd_atomic = 2,
		.max_dest_rd_atomic = 2,
		.min_rnr_timer = 1,
		.timeout = config->timeout ? config->timeout : TIMEOUT,
		.retry_cnt = 7,
		.rnr_retry = config->rnr_retry ? config->rnr_retry : 7,
		.ah_attr = { .is_global = 1, .port_num = 1 },
	};

	if (config->no_rnr_retry)
		attr.rnr_retry = 0;
	attr.ah_attr.grh.sgid_index = GID_INDEX;
	attr.ah_attr.grh.hop_limit = 64;
	ck_assert_int_eq(ibv_query_gid(rig->verbs, 1, GID_INDEX, &attr.ah_attr.grh.dgid), 0);
	return attr;
}

static int mask_of(enum ibv_qp_type type, enum ibv_qp_state state)
{
	int path = IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;

	if (state == IBV_QPS_INIT)
		return IBV_QP_PKEY_INDEX | IBV_QP_PORT |
		       (type == IBV_QPT_UD ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS);
	if (state == IBV_QPS_RTR && (type == IBV_QPT_RC || type == IBV_QPT_XRC_RECV))
		return path | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
	if (state == IBV_QPS_RTR)
		return type == IBV_QPT_UD ? 0 : path;
	if (state == IBV_QPS_RTS && type == IBV_QPT_XRC_RECV)
		return IBV_QP_TIMEOUT | IBV_QP_SQ_PSN;
	if (state == IBV_QPS_RTS && (type == IBV_QPT_RC || type == IBV_QPT_XRC_SEND))
		return IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
		       IBV_QP_MAX_QP_RD_ATOMIC;
	return state == IBV_QPS_RTS ? IBV_QP_SQ_PSN : 0;
}

int rig_modify(struct rig *rig, struct end *end, const struct end *peer, enum ibv_qp_state state,
	       const struct rig_config *config)
{
	struct ibv_qp_attr attr = attr_of(rig, peer, config);

	attr.qp_state = state;
	return ibv_modify_qp(end->qp, &attr, IBV_QP_STATE | mask_of(end->qp->qp_type, state));
}

static void connect_end(struct rig *rig, struct end *end, const struct end *peer,
			const struct rig_config *config)
{
	ck_assert_int_eq(rig_modify(rig, end, peer, IBV_QPS_INIT, config), 0);
	ck_assert_int_eq(rig_modify(rig, end, peer, IBV_QPS_RTR, config), 0);
	ck_assert_int_eq(rig_modify(rig, end, peer, IBV_QPS_RTS, config), 0);
}

static struct ibv_qp *new_qp(struct rig *rig, const struct ibv_qp_init_attr *init,
			     const struct rig_config *config)
{
	struct ibv_qp_init_attr_ex ex = { .qp_type = init->qp_type };

	memcpy(&ex, init, sizeof(*init));
	ex.pd = rig->pd;
	ex.comp_mask = IBV_QP_INIT_ATTR_PD;
	ex.send_ops_flags = config->send_ops;
	if (config->send_ops)
		ex.comp_mask |= IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
	return ibv_create_qp_ex(rig->verbs, &ex);
}

static void end_open(struct rig *rig, struct end *end, unsigned int access,
		     const struct rig_config *config)
{
	bool is_b = end == &rig->b;
	struct ibv_qp_init_attr init = {
		.qp_type = config->type ? config->type : IBV_QPT_RC,
		.srq = is_b ? rig->srq : NULL,
		.cap = { RIG_DEPTH, RIG_DEPTH, 2, 2, 128 },
	};

	end->cq = ibv_create_cq(rig->verbs, config->cqe ? config->cqe : RIG_DEPTH, NULL,
				is_b ? rig->channel : NULL, 0);
	ck_assert_ptr_nonnull(end->cq);
	init.send_cq = end->cq;
	init.recv_cq = end->cq;
	end->qp = new_qp(rig, &init, config);
	ck_assert_ptr_nonnull(end->qp);
	end->memory = calloc(1, RIG_BYTES);
	end->mr = ibv_reg_mr(rig->pd, end->memory, RIG_BYTES, access);
	ck_assert_ptr_nonnull(end->mr);
}

static void srq_open(struct rig *rig)
{
	struct ibv_srq_init_attr init = { .attr = { .max_wr = RIG_DEPTH, .max_sge = 1 } };

	rig->srq = ibv_create_srq(rig->pd, &init);
	ck_assert_ptr_nonnull(rig->srq);
}

void rig_open(struct rig *rig, const struct rig_config *config)
{
	struct ibv_device **list = ibv_get_device_list(NULL);

	ck_assert_ptr_nonnull(list[0]);
	rig_open_on(rig, ibv_open_device(list[0]), config);
	ibv_free_device_list(list);
}

void rig_open_on(struct rig *rig, struct ibv_context *verbs, const struct rig_config *config)
{
	ck_assert_ptr_nonnull(verbs);
	*rig = (struct rig){ .verbs = verbs };
	rig->pd = ibv_alloc_pd(rig->verbs);
	rig->channel = ibv_create_comp_channel(rig->verbs);
	if (config->srq)
		srq_open(rig);
	end_open(rig, &rig->a, RIG_ALL_ACCESS, config);
	end_open(rig, &rig->b, access_of(config), config);
	if (config->unconnected)
		return;
	connect_end(rig, &rig->a, &rig->b, config);
	connect_end(rig, &rig->b, &rig->a, config);
}

static void end_close(struct end *end)
{
	if (end->qp)
		ck_assert_int_eq(ibv_destroy_qp(end->qp), 0);
	ck_assert_int_eq(ibv_destroy_cq(end->cq), 0);
	ck_assert_int_eq(ibv_dereg_mr(end->mr), 0);
	free(end->memory);
}

void rig_close(struct rig *rig)
{
	end_close(&rig->a);
	end_close(&rig->b);
	if (rig->srq)
		ck_assert_int_eq(ibv_destroy_srq(rig->srq), 0);
	ck_assert_int_eq(ibv_destroy_comp_channel(rig->channel), 0);
	ck_assert_int_eq(ibv_dealloc_pd(rig->pd), 0);
	ck_assert_int_eq(ibv_close_device(rig->verbs), 0);
}

void rig_receive(struct end *end, uint64_t wr_id, uint32_t bytes)
{
	struct ibv_sge sge = { (uintptr_t)end->memory, bytes, end->mr->lkey };
	struct ibv_recv_wr *bad, wr = { .wr_id = wr_id, .sg_list = &sge, .num_sge = 1 };

	if (end->qp->srq)
		ck_assert_int_eq(ibv_post_srq_recv(end->qp->srq, &wr, &bad), 0);
	else
		ck_assert_int_eq(ibv_post_recv(end->qp, &wr, &bad), 0);
}

void rig_post(struct end *end, struct ibv_send_wr *wr)
{
	struct ibv_send_wr *bad;

	ck_assert_int_eq(ibv_post_send(end->qp, wr, &bad), 0);
}

struct ibv_send_wr rig_wr(struct rig *rig, enum ibv_wr_opcode opcode, struct ibv_sge *sge,
			  uint32_t bytes)
{
	struct ibv_send_wr wr = {
		.sg_list = sge,
		.num_sge = 1,
		.opcode = opcode,
		.send_flags = IBV_SEND_SIGNALED,
	};

	*sge = (struct ibv_sge){ (uintptr_t)rig->a.memory, bytes, rig->a.mr->lkey };
	if (opcode == IBV_WR_ATOMIC_CMP_AND_SWP || opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		wr.wr.atomic.remote_addr = (uintptr_t)rig->b.memory;
		wr.wr.atomic.rkey = rig->b.mr->rkey;
	} else {
		wr.wr.rdma.remote_addr = (uintptr_t)rig->b.memory;
		wr.wr.rdma.rkey = rig->b.mr->rkey;
	}
	return wr;
}

struct ibv_wc rig_wait(struct ibv_cq *cq, enum ibv_wc_status status)
{
	int64_t end = now_ms() + WAIT_MS;
	struct ibv_wc wc;
	int n;

	do
		n = ibv_poll_cq(cq, 1, &wc);
	while (n == 0 && now_ms() < end);
	ck_assert_int_eq(n, 1);
	ck_assert_str_eq(ibv_wc_status_str(wc.status), ibv_wc_status_str(status));
	return wc;
}

void rig_none(struct ibv_cq *cq)
{
	int64_t end = now_ms() + NONE_MS;
	struct ibv_wc wc;

	while (now_ms() < end)
		ck_assert_int_eq(ibv_poll_cq(cq, 1, &wc), 0);
}

void rig_event(struct rig *rig, enum ibv_event_type type)
{
	struct pollfd ready = { .fd = rig->verbs->async_fd, .events = POLLIN };
	struct ibv_async_event event;

	ck_assert_int_eq(poll(&ready, 1, WAIT_MS), 1);
	ck_assert_int_eq(ibv_get_async_event(rig->verbs, &event), 0);
	ck_assert_str_eq(ibv_event_type_str(event.event_type), ibv_event_type_str(type));
	ibv_ack_async_event(&event);
}

struct ibv_ah *rig_ah(struct rig *rig)
{
	struct ibv_ah_attr attr = { .is_global = 1, .port_num = 1 };

	attr.grh.sgid_index = GID_INDEX;
	attr.grh.hop_limit = 64;
	ck_assert_int_eq(ibv_query_gid(rig->verbs, 1, GID_INDEX, &attr.grh.dgid), 0);
	return ibv_create_ah(rig->pd, &attr);
}

bool rig_is_asleep(pid_t thread)
{
	char path[64], line[256] = "";
	FILE *file;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", thread);
	file = fopen(path, "r");
	ck_assert_ptr_nonnull(file);
	ck_assert_ptr_nonnull(fgets(line, sizeof(line), file));
	fclose(file);
	return strstr(line, ") S ");
}
