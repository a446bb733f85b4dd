/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a device does with each verb, attribute and limit: the rows of tools/fabric/device.md.
 * Prints NAME: RESULT for each: yes, a number, or an errno. Runs on any device whose port has an
 * IPv4 GID: tests/fabric/verbs_page.py. Each row is tried in a process of its own.
 */
#include <errno.h>
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define N(table) (sizeof(table) / sizeof((table)[0]))
#define BYTES	 8192
#define MORE	 (1 << 30)

static struct ibv_context *verbs;
static struct ibv_device_attr_ex attr;
static struct ibv_pd *pd;
static struct ibv_cq *cq;
static struct ibv_mr *mr;
static struct ibv_qp *qp;
static char memory[2 * BYTES] __attribute__((aligned(4096)));
static uint8_t gid_index;

/* --- results: an errno, -1 for a completion in error ------------------------- */

static int of_pointer(const void *object)
{
	return object ? 0 : errno;
}

static int of_int(int ret)
{
	return ret < 0 ? errno : ret;
}

/* --- a queue pair that is connected to itself -------------------------------- */

static struct ibv_qp_init_attr init_of(enum ibv_qp_type type)
{
	return (struct ibv_qp_init_attr){ .qp_type = type,
					  .sq_sig_all = 1,
					  .send_cq = cq,
					  .recv_cq = cq,
					  .cap = { 4, 4, 1, 1, 0 } };
}

static int connect_qp(enum ibv_qp_type type, int access)
{
	struct ibv_qp_init_attr init = init_of(type);
	struct ibv_qp_attr to = { .port_num = 1,
				  .qp_access_flags = (unsigned int)access,
				  .path_mtu = IBV_MTU_1024,
				  .max_dest_rd_atomic = 1,
				  .max_rd_atomic = 1,
				  .min_rnr_timer = 1,
				  .timeout = 14,
				  .retry_cnt = 1,
				  .rnr_retry = 1,
				  .ah_attr = { .is_global = 1, .port_num = 1 } };
	int rc = type == IBV_QPT_RC, err;

	qp = ibv_create_qp(pd, &init);
	if (!qp)
		return errno;
	to.dest_qp_num = qp->qp_num;
	ibv_query_gid(verbs, 1, gid_index, &to.ah_attr.grh.dgid);
	to.ah_attr.grh.sgid_index = gid_index;
	to.ah_attr.grh.hop_limit = 1;
	to.qp_state = IBV_QPS_INIT;
	err = ibv_modify_qp(qp, &to,
			    IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
	to.qp_state = IBV_QPS_RTR;
	if (!err)
		err = ibv_modify_qp(
			qp, &to,
			IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
				IBV_QP_RQ_PSN |
				(rc ? IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER : 0));
	to.qp_state = IBV_QPS_RTS;
	if (!err)
		err = ibv_modify_qp(qp, &to,
				    IBV_QP_STATE | IBV_QP_SQ_PSN |
					    (rc ? IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
							     IBV_QP_RNR_RETRY |
							     IBV_QP_MAX_QP_RD_ATOMIC
						: 0));
	return err;
}

static int await_send(void)
{
	struct ibv_wc wc;
	int i, n = 0;

	for (i = 0; i < 20000; i++) {
		while ((n = ibv_poll_cq(cq, 1, &wc)) > 0)
			if (wc.wr_id == 1 || wc.status)
				return wc.status ? -1 : 0;
		usleep(500);
	}
	return ETIMEDOUT;
}

static int post(enum ibv_qp_type type, enum ibv_wr_opcode opcode, unsigned int flags)
{
	struct ibv_sge sge = { (uintptr_t)memory, 8, mr->lkey };
	struct ibv_recv_wr *bad_recv, recv = { .sg_list = &sge, .num_sge = 1 };
	struct ibv_send_wr *bad, wr = { .wr_id = 1,
					.sg_list = &sge,
					.num_sge = 1,
					.opcode = opcode,
					.send_flags = flags | IBV_SEND_SIGNALED };
	int err = connect_qp(type, 15);

	if (err)
		return err;
	ibv_post_recv(qp, &recv, &bad_recv);
	if (opcode == IBV_WR_ATOMIC_CMP_AND_SWP || opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		wr.wr.atomic.remote_addr = (uintptr_t)memory + BYTES;
		wr.wr.atomic.rkey = mr->rkey;
	} else {
		wr.wr.rdma.remote_addr = (uintptr_t)memory + BYTES;
		wr.wr.rdma.rkey = mr->rkey;
	}
	err = ibv_post_send(qp, &wr, &bad);
	return err ? err : await_send();
}

static int post_rc(int opcode)
{
	return post(IBV_QPT_RC, (enum ibv_wr_opcode)opcode, 0);
}

static int post_uc(int opcode)
{
	return post(IBV_QPT_UC, (enum ibv_wr_opcode)opcode, 0);
}

static int post_unmapped(int opcode)
{
	munmap(memory + BYTES, BYTES);
	return post_rc(opcode);
}

/* --- objects ------------------------------------------------------------------- */

static int reg(int access)
{
	return of_pointer(ibv_reg_mr(pd, memory, BYTES, access));
}

static int reg_unmapped(int access)
{
	return of_pointer(ibv_reg_mr(pd, (void *)4096, BYTES, access));
}

static int reg_by_iova(int access)
{
	return of_pointer(ibv_reg_mr_iova(pd, memory, BYTES, 0, access));
}

static int reg_dmabuf(int access)
{
	return of_pointer(ibv_reg_dmabuf_mr(pd, 0, BYTES, 0, 0, access));
}

static int reg_null(int unused)
{
	(void)unused;
	return of_pointer(ibv_alloc_null_mr(pd));
}

static int rereg(int flags)
{
	int ret = ibv_rereg_mr(mr, flags, pd, memory, BYTES, 7);

	return ret ? errno : 0;
}

static int advise(int advice)
{
	struct ibv_sge sge = { (uintptr_t)memory, 8, mr->lkey };

	return of_int(ibv_advise_mr(pd, (enum ibv_advise_mr_advice)advice, 0, &sge, 1));
}

static int window(int type)
{
	return of_pointer(ibv_alloc_mw(pd, (enum ibv_mw_type)type));
}

static int device_memory(int bytes)
{
	struct ibv_alloc_dm_attr dm = { .length = (size_t)bytes };

	return of_pointer(ibv_alloc_dm(verbs, &dm));
}

static int thread_domain(int unused)
{
	struct ibv_td_init_attr init = { .comp_mask = 0 };

	(void)unused;
	return of_pointer(ibv_alloc_td(verbs, &init));
}

static int parent_domain(int unused)
{
	struct ibv_parent_domain_init_attr init = { .pd = pd };

	(void)unused;
	return of_pointer(ibv_alloc_parent_domain(verbs, &init));
}

static int xrc_domain(int unused)
{
	struct ibv_xrcd_init_attr init = { .comp_mask = IBV_XRCD_INIT_ATTR_FD |
							IBV_XRCD_INIT_ATTR_OFLAGS,
					   .fd = -1,
					   .oflags = O_CREAT };

	(void)unused;
	return of_pointer(ibv_open_xrcd(verbs, &init));
}

static int cq_of(int cqe)
{
	return of_pointer(ibv_create_cq(verbs, cqe, NULL, NULL, 0));
}

static int cq_ex(int flags)
{
	struct ibv_cq_init_attr_ex init = { .cqe = 4, .wc_flags = (uint64_t)flags };

	return of_pointer(ibv_create_cq_ex(verbs, &init));
}

static int resize(int cqe)
{
	return of_int(ibv_resize_cq(cq, cqe));
}

static int moderate(int count)
{
	struct ibv_modify_cq_attr to = { .attr_mask = IBV_CQ_ATTR_MODERATE,
					 .moderate = { (uint16_t)count, 1 } };

	return of_int(ibv_modify_cq(cq, &to));
}

static int srq_of(int n)
{
	struct ibv_srq_init_attr init = { .attr = { (uint32_t)n, 1, 0 } };

	return of_pointer(ibv_create_srq(pd, &init));
}

static int srq_limit(int limit)
{
	struct ibv_srq_init_attr init = { .attr = { 4, 1, 0 } };
	struct ibv_srq *srq = ibv_create_srq(pd, &init);
	struct ibv_srq_attr to = { .max_wr = 8, .srq_limit = (uint32_t)limit };

	return srq ? of_int(ibv_modify_srq(srq, &to, limit ? IBV_SRQ_LIMIT : IBV_SRQ_MAX_WR))
		   : errno;
}

static int srq_of_tags(int unused)
{
	struct ibv_srq_init_attr_ex init = {
		.attr = { 4, 1, 0 },
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_CQ |
			     IBV_SRQ_INIT_ATTR_TM,
		.srq_type = IBV_SRQT_TM,
		.pd = pd,
		.cq = cq,
		.tm_cap = { 4, 4 },
	};

	(void)unused;
	return of_pointer(ibv_create_srq_ex(verbs, &init));
}

/* --- queue pairs ------------------------------------------------------------------ */

static int qp_of(int type)
{
	struct ibv_qp_init_attr init = init_of((enum ibv_qp_type)type);

	return of_pointer(ibv_create_qp(pd, &init));
}

static int qp_with(int ops)
{
	struct ibv_qp_init_attr_ex init = {
		.qp_type = IBV_QPT_RC,
		.send_cq = cq,
		.recv_cq = cq,
		.cap = { 1, 1, 1, 1, 0 },
		.pd = pd,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.send_ops_flags = (uint64_t)ops,
	};

	return of_pointer(ibv_create_qp_ex(verbs, &init));
}

static int more_of(int which)
{
	struct ibv_qp_init_attr init = init_of(IBV_QPT_RC);
	uint32_t *cap[] = { &init.cap.max_send_wr, &init.cap.max_recv_wr, &init.cap.max_send_sge,
			    &init.cap.max_recv_sge, &init.cap.max_inline_data };

	*cap[which] = MORE;
	return of_pointer(ibv_create_qp(pd, &init));
}

static int post_early(int unused)
{
	struct ibv_qp_init_attr init = init_of(IBV_QPT_RC);
	struct ibv_send_wr *bad, wr = { .opcode = IBV_WR_SEND };

	(void)unused;
	qp = ibv_create_qp(pd, &init);
	return qp ? of_int(ibv_post_send(qp, &wr, &bad)) : errno;
}

static int skip_states(int to)
{
	struct ibv_qp_init_attr init = init_of(IBV_QPT_RC);
	struct ibv_qp_attr attr_to = { .qp_state = (enum ibv_qp_state)to };

	qp = ibv_create_qp(pd, &init);
	return qp ? of_int(ibv_modify_qp(qp, &attr_to, IBV_QP_STATE)) : errno;
}

static int drain(int unused)
{
	struct ibv_qp_attr to = { .qp_state = IBV_QPS_SQD };
	int err = connect_qp(IBV_QPT_RC, 15);

	(void)unused;
	return err ? err : of_int(ibv_modify_qp(qp, &to, IBV_QP_STATE));
}

static int alternate_path(int unused)
{
	struct ibv_qp_attr to = { .alt_port_num = 1,
				  .alt_ah_attr = { .is_global = 1, .port_num = 1 } };
	int err = connect_qp(IBV_QPT_RC, 15);

	(void)unused;
	to.alt_ah_attr.grh.sgid_index = gid_index;
	return err ? err : of_int(ibv_modify_qp(qp, &to, IBV_QP_ALT_PATH));
}

static int limit_rate(int unused)
{
	struct ibv_qp_rate_limit_attr to = { .rate_limit = 1000 };
	int err = connect_qp(IBV_QPT_RC, 15);

	(void)unused;
	return err ? err : of_int(ibv_modify_qp_rate_limit(qp, &to));
}

static int query_ece(int unused)
{
	struct ibv_ece ece;
	int err = connect_qp(IBV_QPT_RC, 15);

	(void)unused;
	return err ? err : of_int(ibv_query_ece(qp, &ece));
}

static int attach(int type)
{
	union ibv_gid group = { .raw = { [10] = 0xff, [11] = 0xff, [12] = 239, [15] = 9 } };
	struct ibv_qp_init_attr init = init_of((enum ibv_qp_type)type);

	qp = ibv_create_qp(pd, &init);
	return qp ? of_int(ibv_attach_mcast(qp, &group, 0)) : errno;
}

static int flow(int unused)
{
	struct ibv_flow_attr of = { .type = IBV_FLOW_ATTR_NORMAL, .size = sizeof(of), .port = 1 };
	int err = connect_qp(IBV_QPT_RC, 15);

	(void)unused;
	return err ? err : of_pointer(ibv_create_flow(qp, &of));
}

static int counters(int unused)
{
	struct ibv_counters_init_attr init = { .comp_mask = 0 };

	(void)unused;
	return of_pointer(ibv_create_counters(verbs, &init));
}

static int work_queue(int unused)
{
	struct ibv_wq_init_attr init = {
		.wq_type = IBV_WQT_RQ, .max_wr = 1, .max_sge = 1, .pd = pd, .cq = cq
	};

	(void)unused;
	return of_pointer(ibv_create_wq(verbs, &init));
}

static int handle(int port_num)
{
	struct ibv_ah_attr to = { .is_global = 1, .port_num = (uint8_t)port_num };

	ibv_query_gid(verbs, 1, gid_index, &to.grh.dgid);
	to.grh.sgid_index = gid_index;
	return of_pointer(ibv_create_ah(pd, &to));
}

static int handle_of_gid(int index)
{
	struct ibv_ah_attr to = { .is_global = 1, .port_num = 1 };

	ibv_query_gid(verbs, 1, gid_index, &to.grh.dgid);
	to.grh.sgid_index = (uint8_t)index;
	return of_pointer(ibv_create_ah(pd, &to));
}

static int handle_without_grh(int port_num)
{
	struct ibv_ah_attr to = { .dlid = 1, .port_num = (uint8_t)port_num };

	return of_pointer(ibv_create_ah(pd, &to));
}

static int query_clock(int unused)
{
	struct ibv_values_ex values = { .comp_mask = IBV_VALUES_MASK_RAW_CLOCK };

	(void)unused;
	return of_int(ibv_query_rt_values_ex(verbs, &values));
}

static int query_port(int port_num)
{
	struct ibv_port_attr port;

	return of_int(ibv_query_port(verbs, (uint8_t)port_num, &port));
}

static int destroy_used_cq(int unused)
{
	struct ibv_qp_init_attr init = init_of(IBV_QPT_RC);

	(void)unused;
	qp = ibv_create_qp(pd, &init);
	return of_int(ibv_destroy_cq(cq));
}

static int dealloc_used_pd(int unused)
{
	(void)unused;
	return of_int(ibv_dealloc_pd(pd));
}

/* --- the table ---------------------------------------------------------------------- */

static const struct {
	const char *name;
	int (*try)(int arg);
	int arg;
} rows[] = {
	{ "ibv_query_port, port 1", query_port, 1 },
	{ "ibv_query_port, port 9", query_port, 9 },
	{ "ibv_query_rt_values_ex", query_clock, 0 },
	{ "ibv_reg_mr, no access", reg, 0 },
	{ "ibv_reg_mr, all access", reg, 15 },
	{ "ibv_reg_mr, remote write without local write", reg, IBV_ACCESS_REMOTE_WRITE },
	{ "ibv_reg_mr, atomics without local write", reg, IBV_ACCESS_REMOTE_ATOMIC },
	{ "ibv_reg_mr, remote read without local write", reg, IBV_ACCESS_REMOTE_READ },
	{ "ibv_reg_mr, zero based", reg, IBV_ACCESS_ZERO_BASED },
	{ "ibv_reg_mr, on demand", reg, IBV_ACCESS_ON_DEMAND | 1 },
	{ "ibv_reg_mr, windows may be bound", reg, IBV_ACCESS_MW_BIND | 1 },
	{ "ibv_reg_mr, relaxed order", reg, IBV_ACCESS_RELAXED_ORDERING | 1 },
	{ "ibv_reg_mr, an unknown access", reg, 1 << 18 },
	{ "ibv_reg_mr, unmapped memory", reg_unmapped, 1 },
	{ "ibv_reg_mr_iova", reg_by_iova, 1 },
	{ "ibv_reg_dmabuf_mr", reg_dmabuf, 1 },
	{ "ibv_alloc_null_mr", reg_null, 0 },
	{ "ibv_rereg_mr, access", rereg, IBV_REREG_MR_CHANGE_ACCESS },
	{ "ibv_rereg_mr, domain", rereg, IBV_REREG_MR_CHANGE_PD },
	{ "ibv_rereg_mr, translation", rereg, IBV_REREG_MR_CHANGE_TRANSLATION },
	{ "ibv_rereg_mr, nothing", rereg, 0 },
	{ "ibv_advise_mr, memory that is not on demand", advise, 0 },
	{ "ibv_alloc_mw, type 1", window, IBV_MW_TYPE_1 },
	{ "ibv_alloc_mw, type 2", window, IBV_MW_TYPE_2 },
	{ "ibv_alloc_dm", device_memory, 4096 },
	{ "ibv_alloc_td", thread_domain, 0 },
	{ "ibv_alloc_parent_domain", parent_domain, 0 },
	{ "ibv_open_xrcd", xrc_domain, 0 },
	{ "ibv_dealloc_pd, a used one", dealloc_used_pd, 0 },
	{ "ibv_create_cq, 0 entries", cq_of, 0 },
	{ "ibv_create_cq, too many entries", cq_of, MORE },
	{ "ibv_create_cq_ex", cq_ex, 0 },
	{ "ibv_create_cq_ex, timestamps", cq_ex, IBV_WC_EX_WITH_COMPLETION_TIMESTAMP },
	{ "ibv_create_cq_ex, VLAN", cq_ex, IBV_WC_EX_WITH_CVLAN },
	{ "ibv_resize_cq", resize, 32 },
	{ "ibv_resize_cq, too many entries", resize, MORE },
	{ "ibv_modify_cq", moderate, 2 },
	{ "ibv_destroy_cq, a used one", destroy_used_cq, 0 },
	{ "ibv_create_srq", srq_of, 4 },
	{ "ibv_create_srq, too many entries", srq_of, MORE },
	{ "ibv_create_srq_ex, tag matching", srq_of_tags, 0 },
	{ "ibv_modify_srq, a limit", srq_limit, 2 },
	{ "ibv_modify_srq, a limit beyond its size", srq_limit, 1000 },
	{ "ibv_modify_srq, its size", srq_limit, 0 },
	{ "ibv_create_qp, RC", qp_of, IBV_QPT_RC },
	{ "ibv_create_qp, UC", qp_of, IBV_QPT_UC },
	{ "ibv_create_qp, UD", qp_of, IBV_QPT_UD },
	{ "ibv_create_qp, XRC initiator", qp_of, IBV_QPT_XRC_SEND },
	{ "ibv_create_qp, raw packets", qp_of, IBV_QPT_RAW_PACKET },
	{ "ibv_create_qp, of the driver", qp_of, IBV_QPT_DRIVER },
	{ "ibv_create_qp, too many sends", more_of, 0 },
	{ "ibv_create_qp, too many receives", more_of, 1 },
	{ "ibv_create_qp, too many elements of a send", more_of, 2 },
	{ "ibv_create_qp, too many elements of a receive", more_of, 3 },
	{ "ibv_create_qp, too much inline data", more_of, 4 },
	{ "ibv_create_qp_ex, ibv_wr_send", qp_with, IBV_QP_EX_WITH_SEND },
	{ "ibv_create_qp_ex, ibv_wr_bind_mw", qp_with, IBV_QP_EX_WITH_BIND_MW },
	{ "ibv_create_qp_ex, ibv_wr_send_tso", qp_with, IBV_QP_EX_WITH_TSO },
	{ "ibv_create_qp_ex, ibv_wr_atomic_write", qp_with, IBV_QP_EX_WITH_ATOMIC_WRITE },
	{ "ibv_modify_qp, RESET to RTS", skip_states, IBV_QPS_RTS },
	{ "ibv_modify_qp, RESET to SQD", skip_states, IBV_QPS_SQD },
	{ "ibv_modify_qp, RESET to ERR", skip_states, IBV_QPS_ERR },
	{ "ibv_modify_qp, RTS to SQD", drain, 0 },
	{ "ibv_modify_qp, an alternate path", alternate_path, 0 },
	{ "ibv_modify_qp_rate_limit", limit_rate, 0 },
	{ "ibv_query_ece", query_ece, 0 },
	{ "ibv_post_send, in RESET", post_early, 0 },
	{ "RC: send", post_rc, IBV_WR_SEND },
	{ "RC: send with immediate data", post_rc, IBV_WR_SEND_WITH_IMM },
	{ "RC: send with invalidation of no window", post_rc, IBV_WR_SEND_WITH_INV },
	{ "RC: write", post_rc, IBV_WR_RDMA_WRITE },
	{ "RC: write with immediate data", post_rc, IBV_WR_RDMA_WRITE_WITH_IMM },
	{ "RC: read", post_rc, IBV_WR_RDMA_READ },
	{ "RC: compare and swap", post_rc, IBV_WR_ATOMIC_CMP_AND_SWP },
	{ "RC: fetch and add", post_rc, IBV_WR_ATOMIC_FETCH_AND_ADD },
	{ "RC: atomic write", post_rc, IBV_WR_ATOMIC_WRITE },
	{ "RC: TSO", post_rc, IBV_WR_TSO },
	{ "RC: write to memory that was unmapped", post_unmapped, IBV_WR_RDMA_WRITE },
	{ "RC: read of memory that was unmapped", post_unmapped, IBV_WR_RDMA_READ },
	{ "UC: send", post_uc, IBV_WR_SEND },
	{ "UC: write", post_uc, IBV_WR_RDMA_WRITE },
	{ "UC: read", post_uc, IBV_WR_RDMA_READ },
	{ "UC: fetch and add", post_uc, IBV_WR_ATOMIC_FETCH_AND_ADD },
	{ "ibv_attach_mcast, UD", attach, IBV_QPT_UD },
	{ "ibv_attach_mcast, RC", attach, IBV_QPT_RC },
	{ "ibv_create_ah, port 1", handle, 1 },
	{ "ibv_create_ah, port 9", handle, 9 },
	{ "ibv_create_ah, without a GRH", handle_without_grh, 1 },
	{ "ibv_create_ah, from an empty GID", handle_of_gid, 40 },
	{ "ibv_create_flow", flow, 0 },
	{ "ibv_create_counters", counters, 0 },
	{ "ibv_create_wq", work_queue, 0 },
};

static const struct {
	const char *name;
	size_t at;
} limits[] = {
#define LIMIT(name)                                           \
	{                                                     \
#name, offsetof(struct ibv_device_attr, name) \
	}
	LIMIT(max_qp),
	LIMIT(max_qp_wr),
	LIMIT(max_sge),
	LIMIT(max_sge_rd),
	LIMIT(max_cq),
	LIMIT(max_cqe),
	LIMIT(max_mr),
	LIMIT(max_pd),
	LIMIT(max_qp_rd_atom),
	LIMIT(max_mw),
	LIMIT(max_qp_init_rd_atom),
	LIMIT(max_mcast_grp),
	LIMIT(max_mcast_qp_attach),
	LIMIT(max_ah),
	LIMIT(max_srq),
	LIMIT(max_srq_wr),
	LIMIT(max_srq_sge),
};

static void open_device(const char *name)
{
	static const uint8_t ipv4[12] = { [10] = 0xff, [11] = 0xff };
	struct ibv_device **list = ibv_get_device_list(NULL);
	union ibv_gid gid;

	while (list && *list && strcmp(ibv_get_device_name(*list), name) != 0)
		list++;
	verbs = list && *list ? ibv_open_device(*list) : NULL;
	if (!verbs || ibv_query_device_ex(verbs, NULL, &attr))
		exit(2);
	while (ibv_query_gid(verbs, 1, gid_index, &gid) || memcmp(gid.raw, ipv4, sizeof(ipv4)) != 0)
		gid_index++;
	pd = ibv_alloc_pd(verbs);
	cq = ibv_create_cq(verbs, 16, NULL, NULL, 0);
	mr = ibv_reg_mr(pd, memory, sizeof(memory), 15);
}

static void try_row(const char *device, size_t i)
{
	int err;

	open_device(device);
	errno = 0;
	err = rows[i].try(rows[i].arg);
	printf("%s: %s\n", rows[i].name,
	       err == 0	 ? "yes"
	       : err < 0 ? "completion in error"
			 : strerrorname_np(err));
}

int main(int argc, char **argv)
{
	size_t i;
	int value, status;

	setvbuf(stdout, NULL, _IOLBF, 0);
	for (i = 0; argc > 1 && i < N(rows); i++) {
		pid_t child = fork();

		if (child == 0) {
			try_row(argv[1], i);
			_exit(0);
		}
		if (child < 0 || waitpid(child, &status, 0) != child || status)
			printf("%s: status %d\n", rows[i].name, status);
	}
	if (argc < 2)
		return 2;
	open_device(argv[1]);
	for (i = 0; i < N(limits); i++) {
		memcpy(&value, (const char *)&attr.orig_attr + limits[i].at, sizeof(value));
		printf("%s: %d\n", limits[i].name, value);
	}
	return 0;
}
