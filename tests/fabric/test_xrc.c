/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Extended reliable connections: an initiator names a shared receive queue of the target's domain
 * for its message. Runs on a host of a soft fabric, on both of its wires: tests/fabric/meson.build.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/fabric/rig.h"
#include "tests/unit/test.h"

#define BYTES	 64
#define LONG	 300000
#define SEND_OPS (IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_RDMA_WRITE)
#define SRQ_ATTRS                                                                 \
	(IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_XRCD | \
	 IBV_SRQ_INIT_ATTR_CQ)

/* A rig whose two queue pairs are an XRC initiator (a) and an XRC target (b). */
struct xrc {
	struct rig rig;
	struct ibv_xrcd *xrcd;
	struct ibv_srq *srq;
	uint32_t srqn;
};

static const struct rig_config no_connection = { .unconnected = true };

static struct ibv_xrcd *open_domain(struct ibv_context *verbs, int fd, int oflags)
{
	struct ibv_xrcd_init_attr attr = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
		.fd = fd,
		.oflags = oflags,
	};

	return ibv_open_xrcd(verbs, &attr);
}

static struct ibv_srq *new_srq(struct xrc *xrc, struct ibv_xrcd *xrcd, struct ibv_pd *pd)
{
	struct ibv_srq_init_attr_ex init = {
		.attr = { .max_wr = 8, .max_sge = 1 },
		.comp_mask = SRQ_ATTRS,
		.srq_type = IBV_SRQT_XRC,
		.pd = pd,
		.xrcd = xrcd,
		.cq = xrc->rig.b.cq,
	};
	struct ibv_srq *srq = ibv_create_srq_ex(xrc->rig.verbs, &init);

	ck_assert_ptr_nonnull(srq);
	return srq;
}

static void receive(struct xrc *xrc, struct ibv_srq *srq, uint64_t wr_id, uint32_t bytes)
{
	struct ibv_sge sge = { (uintptr_t)xrc->rig.b.memory, bytes, xrc->rig.b.mr->lkey };
	struct ibv_recv_wr *bad, wr = { .wr_id = wr_id, .sg_list = &sge, .num_sge = 1 };

	ck_assert_int_eq(ibv_post_srq_recv(srq, &wr, &bad), 0);
}

static void replace_qp(struct xrc *xrc, struct end *end, enum ibv_qp_type type)
{
	struct ibv_qp_init_attr_ex init = {
		.qp_type = type,
		.cap = { 8, 0, 1, 0, 64 },
		.send_cq = end->cq,
	};

	ck_assert_int_eq(ibv_destroy_qp(end->qp), 0);
	if (type == IBV_QPT_XRC_SEND) {
		init.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
		init.pd = xrc->rig.pd;
		init.send_ops_flags = SEND_OPS;
	} else {
		init.comp_mask = IBV_QP_INIT_ATTR_XRCD;
		init.send_cq = NULL;
		init.xrcd = xrc->xrcd;
	}
	end->qp = ibv_create_qp_ex(xrc->rig.verbs, &init);
	ck_assert_ptr_nonnull(end->qp);
}

static void open_xrc(struct xrc *xrc)
{
	static const enum ibv_qp_state states[] = { IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS };
	struct rig *rig = &xrc->rig;
	unsigned int i;

	rig_open(rig, &no_connection);
	xrc->xrcd = open_domain(rig->verbs, -1, O_CREAT);
	ck_assert_ptr_nonnull(xrc->xrcd);
	xrc->srq = new_srq(xrc, xrc->xrcd, rig->pd);
	ck_assert_int_eq(ibv_get_srq_num(xrc->srq, &xrc->srqn), 0);
	replace_qp(xrc, &rig->a, IBV_QPT_XRC_SEND);
	replace_qp(xrc, &rig->b, IBV_QPT_XRC_RECV);
	for (i = 0; i < 3; i++) {
		ck_assert_int_eq(rig_modify(rig, &rig->a, &rig->b, states[i], &no_connection), 0);
		ck_assert_int_eq(rig_modify(rig, &rig->b, &rig->a, states[i], &no_connection), 0);
	}
	memcpy(rig->a.memory, "elephant", 8);
}

/* In an order in which no object is busy. */
static void close_xrc(struct xrc *xrc)
{
	struct rig *rig = &xrc->rig;
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_RC, .cap = { 1, 1, 1, 1, 0 } };

	ck_assert_int_eq(ibv_destroy_qp(rig->b.qp), 0);
	if (xrc->srq)
		ck_assert_int_eq(ibv_destroy_srq(xrc->srq), 0);
	ck_assert_int_eq(ibv_close_xrcd(xrc->xrcd), 0);
	init.send_cq = rig->b.cq;
	init.recv_cq = rig->b.cq;
	rig->b.qp = ibv_create_qp(rig->pd, &init);
	rig_close(rig);
}

static struct ibv_send_wr request(struct xrc *xrc, enum ibv_wr_opcode opcode, struct ibv_sge *sge,
				  uint32_t bytes)
{
	struct ibv_send_wr wr = rig_wr(&xrc->rig, opcode, sge, bytes);

	wr.qp_type.xrc.remote_srqn = xrc->srqn;
	return wr;
}

static void expect(struct xrc *xrc, struct ibv_send_wr *wr, enum ibv_wc_status status)
{
	rig_post(&xrc->rig.a, wr);
	rig_wait(xrc->rig.a.cq, status);
}

/* --- messages ------------------------------------------------------------ */

static const uint32_t lengths[] = { 0, 8, LONG };

TEST_LOOP(message_uses_a_receive_of_the_named_queue, 0, 3)
{
	struct ibv_send_wr wr;
	struct ibv_sge sge;
	struct ibv_wc wc;
	struct xrc xrc;

	open_xrc(&xrc);
	receive(&xrc, xrc.srq, 5, LONG);
	wr = request(&xrc, IBV_WR_SEND_WITH_IMM, &sge, lengths[_i]);
	wr.imm_data = 77;
	expect(&xrc, &wr, IBV_WC_SUCCESS);
	wc = rig_wait(xrc.rig.b.cq, IBV_WC_SUCCESS);
	ck_assert_uint_eq(wc.wr_id, 5);
	ck_assert_uint_eq(wc.byte_len, lengths[_i]);
	ck_assert_uint_eq(wc.imm_data, 77);
	ck_assert_uint_eq(wc.qp_num, xrc.rig.b.qp->qp_num);
	ck_assert_int_eq(memcmp(xrc.rig.a.memory, xrc.rig.b.memory, lengths[_i]), 0);
	close_xrc(&xrc);
}

TEST(two_queues_of_a_domain_are_distinguished)
{
	struct ibv_srq *other;
	struct ibv_send_wr wr;
	struct ibv_sge sge;
	struct xrc xrc;

	open_xrc(&xrc);
	other = new_srq(&xrc, xrc.xrcd, xrc.rig.pd);
	receive(&xrc, xrc.srq, 1, BYTES);
	receive(&xrc, other, 2, BYTES);
	wr = request(&xrc, IBV_WR_SEND, &sge, 8);
	ck_assert_int_eq(ibv_get_srq_num(other, &wr.qp_type.xrc.remote_srqn), 0);
	ck_assert_uint_ne(wr.qp_type.xrc.remote_srqn, xrc.srqn);
	expect(&xrc, &wr, IBV_WC_SUCCESS);
	ck_assert_uint_eq(rig_wait(xrc.rig.b.cq, IBV_WC_SUCCESS).wr_id, 2);
	wr.qp_type.xrc.remote_srqn = xrc.srqn;
	expect(&xrc, &wr, IBV_WC_SUCCESS);
	ck_assert_uint_eq(rig_wait(xrc.rig.b.cq, IBV_WC_SUCCESS).wr_id, 1);
	ck_assert_int_eq(ibv_destroy_srq(other), 0);
	close_xrc(&xrc);
}

TEST_LOOP(memory_of_the_target_is_written_and_read, 0, 2)
{
	struct ibv_send_wr wr;
	struct ibv_sge sge;
	struct xrc xrc;

	open_xrc(&xrc);
	memcpy(xrc.rig.b.memory, "squirrel", 8);
	wr = request(&xrc, _i ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE, &sge, 8);
	expect(&xrc, &wr, IBV_WC_SUCCESS);
	ck_assert_int_eq(memcmp(xrc.rig.b.memory, _i ? "squirrel" : "elephant", 8), 0);
	ck_assert_int_eq(memcmp(xrc.rig.a.memory, _i ? "squirrel" : "elephant", 8), 0);
	close_xrc(&xrc);
}

TEST_LOOP(atomics_act_on_the_target, 0, 2)
{
	uint64_t *at, before = 5;
	struct ibv_send_wr wr;
	struct ibv_sge sge;
	struct xrc xrc;

	open_xrc(&xrc);
	at = (uint64_t *)xrc.rig.b.memory;
	*at = before;
	wr = request(&xrc, _i ? IBV_WR_ATOMIC_CMP_AND_SWP : IBV_WR_ATOMIC_FETCH_AND_ADD, &sge, 8);
	wr.wr.atomic.compare_add = before;
	wr.wr.atomic.swap = 10;
	expect(&xrc, &wr, IBV_WC_SUCCESS);
	ck_assert_uint_eq(*at, 10);
	ck_assert_int_eq(memcmp(xrc.rig.a.memory, &before, 8), 0);
	close_xrc(&xrc);
}

TEST(initiator_can_read_a_long_range)
{
	struct ibv_send_wr wr;
	struct ibv_sge sge;
	struct xrc xrc;

	open_xrc(&xrc);
	memset(xrc.rig.b.memory, 7, LONG);
	wr = request(&xrc, IBV_WR_RDMA_READ, &sge, LONG);
	expect(&xrc, &wr, IBV_WC_SUCCESS);
	ck_assert_int_eq(memcmp(xrc.rig.a.memory, xrc.rig.b.memory, LONG), 0);
	close_xrc(&xrc);
}

TEST(queue_without_a_receive_makes_the_initiator_wait)
{
	struct ibv_send_wr wr;
	struct ibv_sge sge;
	struct xrc xrc;

	open_xrc(&xrc);
	wr = request(&xrc, IBV_WR_SEND, &sge, 8);
	rig_post(&xrc.rig.a, &wr);
	rig_none(xrc.rig.a.cq);
	receive(&xrc, xrc.srq, 1, BYTES);
	rig_wait(xrc.rig.a.cq, IBV_WC_SUCCESS);
	rig_wait(xrc.rig.b.cq, IBV_WC_SUCCESS);
	close_xrc(&xrc);
}

TEST(functions_of_an_extended_initiator_name_the_queue)
{
	struct ibv_qp_ex *ex;
	struct xrc xrc;

	open_xrc(&xrc);
	receive(&xrc, xrc.srq, 3, BYTES);
	ex = ibv_qp_to_qp_ex(xrc.rig.a.qp);
	ibv_wr_start(ex);
	ex->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_send(ex);
	ibv_wr_set_xrc_srqn(ex, xrc.srqn);
	ibv_wr_set_sge(ex, xrc.rig.a.mr->lkey, (uintptr_t)xrc.rig.a.memory, 8);
	ck_assert_int_eq(ibv_wr_complete(ex), 0);
	rig_wait(xrc.rig.a.cq, IBV_WC_SUCCESS);
	ck_assert_uint_eq(rig_wait(xrc.rig.b.cq, IBV_WC_SUCCESS).wr_id, 3);
	close_xrc(&xrc);
}

/* --- refused requests ---------------------------------------------------- */

static void expect_refusal(struct xrc *xrc, struct ibv_send_wr *wr, enum ibv_wc_status status,
			   enum ibv_event_type event)
{
	expect(xrc, wr, status);
	rig_event(&xrc->rig, event);
	rig_none(xrc->rig.b.cq);
}

TEST_LOOP(message_for_an_unknown_queue_is_refused, 0, 2)
{
	struct ibv_send_wr wr;
	struct ibv_sge sge;
	struct xrc xrc;

	open_xrc(&xrc);
	receive(&xrc, xrc.srq, 1, BYTES);
	wr = request(&xrc, _i ? IBV_WR_RDMA_READ : IBV_WR_SEND, &sge, 8);
	wr.qp_type.xrc.remote_srqn = xrc.srqn + 1;
	expect_refusal(&xrc, &wr, IBV_WC_REM_INV_REQ_ERR, IBV_EVENT_QP_REQ_ERR);
	close_xrc(&xrc);
}

TEST(queue_of_another_domain_is_not_reached)
{
	struct ibv_xrcd *domain;
	struct ibv_srq *other;
	struct ibv_send_wr wr;
	struct ibv_sge sge;
	struct xrc xrc;

	open_xrc(&xrc);
	domain = open_domain(xrc.rig.verbs, -1, O_CREAT);
	other = new_srq(&xrc, domain, xrc.rig.pd);
	receive(&xrc, other, 1, BYTES);
	wr = request(&xrc, IBV_WR_SEND, &sge, 8);
	ck_assert_int_eq(ibv_get_srq_num(other, &wr.qp_type.xrc.remote_srqn), 0);
	expect_refusal(&xrc, &wr, IBV_WC_REM_INV_REQ_ERR, IBV_EVENT_QP_REQ_ERR);
	ck_assert_int_eq(ibv_close_xrcd(domain), EBUSY);
	ck_assert_int_eq(ibv_destroy_srq(other), 0);
	ck_assert_int_eq(ibv_close_xrcd(domain), 0);
	close_xrc(&xrc);
}

/* A peer may use keys of the protection domain of the queue that it names. */
TEST(keys_are_those_of_the_queues_protection_domain)
{
	struct ibv_pd *pd;
	struct ibv_srq *other;
	struct ibv_send_wr wr;
	struct ibv_sge sge;
	struct xrc xrc;

	open_xrc(&xrc);
	pd = ibv_alloc_pd(xrc.rig.verbs);
	other = new_srq(&xrc, xrc.xrcd, pd);
	wr = request(&xrc, IBV_WR_RDMA_WRITE, &sge, 8);
	ck_assert_int_eq(ibv_get_srq_num(other, &wr.qp_type.xrc.remote_srqn), 0);
	expect_refusal(&xrc, &wr, IBV_WC_REM_ACCESS_ERR, IBV_EVENT_QP_ACCESS_ERR);
	ck_assert_int_eq(ibv_destroy_srq(other), 0);
	ck_assert_int_eq(ibv_dealloc_pd(pd), 0);
	close_xrc(&xrc);
}

TEST(destroyed_queue_is_not_reached)
{
	struct ibv_send_wr wr;
	struct ibv_sge sge;
	struct xrc xrc;

	open_xrc(&xrc);
	ck_assert_int_eq(ibv_destroy_srq(xrc.srq), 0);
	xrc.srq = NULL;
	wr = request(&xrc, IBV_WR_SEND, &sge, 8);
	expect_refusal(&xrc, &wr, IBV_WC_REM_INV_REQ_ERR, IBV_EVENT_QP_REQ_ERR);
	close_xrc(&xrc);
}

TEST(target_sends_nothing_and_neither_end_receives)
{
	struct ibv_recv_wr *bad_recv, recv = { .wr_id = 1 };
	struct ibv_send_wr *bad, wr;
	struct ibv_sge sge;
	struct xrc xrc;

	open_xrc(&xrc);
	wr = request(&xrc, IBV_WR_SEND, &sge, 8);
	ck_assert_int_eq(ibv_post_send(xrc.rig.b.qp, &wr, &bad), EINVAL);
	ck_assert_int_eq(ibv_post_recv(xrc.rig.a.qp, &recv, &bad_recv), EINVAL);
	ck_assert_int_eq(ibv_post_recv(xrc.rig.b.qp, &recv, &bad_recv), EINVAL);
	close_xrc(&xrc);
}

/* --- domains ------------------------------------------------------------- */

TEST(domain_of_a_file_is_found_by_any_descriptor_of_it)
{
	char path[TEMPORARY_BYTES];
	struct ibv_xrcd *first, *second;
	struct rig rig;
	int fd = mkstemp(name_temporary(path)), again = open(path, O_RDONLY);

	rig_open(&rig, &no_connection);
	ck_assert_ptr_null(open_domain(rig.verbs, fd, 0));
	ck_assert_int_eq(errno, EAGAIN);
	first = open_domain(rig.verbs, fd, O_CREAT | O_EXCL);
	ck_assert_ptr_nonnull(first);
	ck_assert_ptr_null(open_domain(rig.verbs, again, O_CREAT | O_EXCL));
	ck_assert_int_eq(errno, EINVAL);
	second = open_domain(rig.verbs, again, 0);
	ck_assert_ptr_nonnull(second);
	ck_assert_int_eq(ibv_close_xrcd(first), 0);
	ck_assert_int_eq(ibv_close_xrcd(second), 0);
	rig_close(&rig);
	close(fd);
	close(again);
	unlink(path);
}

TEST(queue_without_an_xrc_domain_has_no_number)
{
	struct rig rig;
	uint32_t number;

	rig_open(&rig, &(struct rig_config){ .srq = true });
	ck_assert_int_eq(ibv_get_srq_num(rig.srq, &number), EINVAL);
	rig_close(&rig);
}
