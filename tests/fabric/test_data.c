/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Data on connected queue pairs: what arrives, and which requests are refused with which errors.
 * Runs on a host of a soft fabric: tests/fabric/meson.build.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>

#include "tests/fabric/rig.h"
#include "tests/unit/test.h"

static void fill(char *memory, size_t bytes, unsigned int seed)
{
	size_t i;

	for (i = 0; i < bytes; i++)
		memory[i] = (char)(seed = seed * 1103515245 + 12345);
}

TEST_LOOP(send_arrives_with_its_immediate, 0, 2)
{
	struct ibv_send_wr wr;
	struct ibv_sge sge;
	struct ibv_wc wc;
	struct rig rig;

	rig_open(&rig, &(struct rig_config){ .type = _i ? IBV_QPT_UC : IBV_QPT_RC });
	wr = rig_wr(&rig, IBV_WR_SEND_WITH_IMM, &sge, 5);
	wr.imm_data = htonl(77);
	memcpy(rig.a.memory, "hello", 5);
	rig_receive(&rig.b, 1, 100);
	rig_post(&rig.a, &wr);
	wc = rig_wait(rig.b.cq, IBV_WC_SUCCESS);
	ck_assert_int_eq(memcmp(rig.b.memory, "hello", 5), 0);
	ck_assert_uint_eq(wc.byte_len, 5);
	ck_assert_uint_eq(wc.imm_data, htonl(77));
	ck_assert_uint_eq(wc.wc_flags, IBV_WC_WITH_IMM);
	ck_assert_int_eq(wc.opcode, IBV_WC_RECV);
	ck_assert_int_eq(rig_wait(rig.a.cq, IBV_WC_SUCCESS).opcode, IBV_WC_SEND);
	rig_close(&rig);
}

TEST(long_write_and_read_transfer_all_bytes)
{
	char *copy = malloc(RIG_BYTES);
	struct ibv_send_wr wr;
	struct ibv_sge sge;
	struct rig rig;

	rig_open(&rig, &(struct rig_config){ .type = IBV_QPT_RC });
	fill(rig.a.memory, RIG_BYTES, 1);
	memcpy(copy, rig.a.memory, RIG_BYTES);
	wr = rig_wr(&rig, IBV_WR_RDMA_WRITE, &sge, RIG_BYTES);
	rig_post(&rig.a, &wr);
	rig_wait(rig.a.cq, IBV_WC_SUCCESS);
	memset(rig.a.memory, 0, RIG_BYTES);
	wr.opcode = IBV_WR_RDMA_READ;
	rig_post(&rig.a, &wr);
	ck_assert_int_eq(rig_wait(rig.a.cq, IBV_WC_SUCCESS).opcode, IBV_WC_RDMA_READ);
	ck_assert_int_eq(memcmp(rig.a.memory, copy, RIG_BYTES), 0);
	free(copy);
	rig_close(&rig);
}

TEST(write_with_immediate_consumes_a_receive)
{
	struct ibv_send_wr wr;
	struct ibv_sge sge;
	struct ibv_wc wc;
	struct rig rig;

	rig_open(&rig, &(struct rig_config){ .type = IBV_QPT_RC });
	wr = rig_wr(&rig, IBV_WR_RDMA_WRITE_WITH_IMM, &sge, 9);
	rig_receive(&rig.b, 5, 0);
	rig_post(&rig.a, &wr);
	wc = rig_wait(rig.b.cq, IBV_WC_SUCCESS);
	ck_assert_uint_eq(wc.wr_id, 5);
	ck_assert_int_eq(wc.opcode, IBV_WC_RECV_RDMA_WITH_IMM);
	rig_close(&rig);
}

TEST(atomics_return_the_previous_value)
{
	struct ibv_send_wr wr;
	struct ibv_sge sge;
	struct rig rig;
	uint64_t *there, *here;

	rig_open(&rig, &(struct rig_config){ .type = IBV_QPT_RC });
	there = (uint64_t *)rig.b.memory;
	here = (uint64_t *)rig.a.memory;
	*there = 40;
	wr = rig_wr(&rig, IBV_WR_ATOMIC_FETCH_AND_ADD, &sge, 8);
	wr.wr.atomic.compare_add = 2;
	rig_post(&rig.a, &wr);
	rig_wait(rig.a.cq, IBV_WC_SUCCESS);
	ck_assert_uint_eq(*here, 40);
	wr.opcode = IBV_WR_ATOMIC_CMP_AND_SWP;
	wr.wr.atomic.compare_add = 42;
	wr.wr.atomic.swap = 1;
	rig_post(&rig.a, &wr);
	ck_assert_int_eq(rig_wait(rig.a.cq, IBV_WC_SUCCESS).opcode, IBV_WC_COMP_SWAP);
	ck_assert_uint_eq(*here, 42);
	ck_assert_uint_eq(*there, 1);
	rig_close(&rig);
}

TEST(inline_data_is_copied_when_it_is_posted)
{
	struct ibv_send_wr wr;
	struct ibv_sge sge;
	struct rig rig;

	rig_open(&rig, &(struct rig_config){ .type = IBV_QPT_RC });
	wr = rig_wr(&rig, IBV_WR_SEND, &sge, 3);
	sge.lkey = 0; /* ignored */
	wr.send_flags |= IBV_SEND_INLINE;
	memcpy(rig.a.memory, "abc", 3);
	rig_post(&rig.a, &wr);
	memset(rig.a.memory, 0, 3);
	rig_receive(&rig.b, 1, 100);
	rig_wait(rig.b.cq, IBV_WC_SUCCESS);
	ck_assert_int_eq(memcmp(rig.b.memory, "abc", 3), 0);
	rig_close(&rig);
}

TEST(unsignaled_sends_leave_no_completion)
{
	struct ibv_send_wr wr;
	struct ibv_sge sge;
	struct rig rig;

	rig_open(&rig, &(struct rig_config){ .type = IBV_QPT_RC });
	wr = rig_wr(&rig, IBV_WR_RDMA_WRITE, &sge, 3);
	wr.send_flags = 0;
	rig_post(&rig.a, &wr);
	wr.send_flags = IBV_SEND_SIGNALED;
	wr.wr_id = 8;
	rig_post(&rig.a, &wr);
	ck_assert_uint_eq(rig_wait(rig.a.cq, IBV_WC_SUCCESS).wr_id, 8);
	rig_close(&rig);
}

/* --- refused requests ---------------------------------------------------- */

/* Both queue pairs are in error afterwards, and pending requests are flushed. */
static void expect_failure(struct rig *rig, struct ibv_send_wr *wr, enum ibv_wc_status status,
			   enum ibv_event_type event)
{
	struct ibv_send_wr next = *wr;
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	struct ibv_wc wc;

	rig_receive(&rig->a, 50, 10);
	next.wr_id = 51;
	wr->wr_id = 49;
	wr->next = &next;
	rig_post(&rig->a, wr);
	ck_assert_uint_eq(rig_wait(rig->a.cq, status).wr_id, 49);
	wc = rig_wait(rig->a.cq, IBV_WC_WR_FLUSH_ERR);
	ck_assert_uint_eq(wc.wr_id, 51);
	wc = rig_wait(rig->a.cq, IBV_WC_WR_FLUSH_ERR);
	ck_assert_uint_eq(wc.wr_id, 50);
	rig_event(rig, event);
	ibv_query_qp(rig->b.qp, &attr, IBV_QP_STATE, &init);
	ck_assert_int_eq(attr.qp_state, IBV_QPS_ERR);
}

TEST(write_past_the_end_is_a_remote_access_error)
{
	struct ibv_send_wr wr;
	struct ibv_sge sge;
	struct rig rig;

	rig_open(&rig, &(struct rig_config){ .type = IBV_QPT_RC });
	wr = rig_wr(&rig, IBV_WR_RDMA_WRITE, &sge, 100);
	wr.wr.rdma.remote_addr += RIG_BYTES - 99;
	expect_failure(&rig, &wr, IBV_WC_REM_ACCESS_ERR, IBV_EVENT_QP_ACCESS_ERR);
	rig_close(&rig);
}

TEST(unknown_key_is_a_remote_access_error)
{
	struct ibv_send_wr wr;
	struct ibv_sge sge;
	struct rig rig;

	rig_open(&rig, &(struct rig_config){ .type = IBV_QPT_RC });
	wr = rig_wr(&rig, IBV_WR_RDMA_READ, &sge, 100);
	wr.wr.rdma.rkey ^= 1;
	expect_failure(&rig, &wr, IBV_WC_REM_ACCESS_ERR, IBV_EVENT_QP_ACCESS_ERR);
	rig_close(&rig);
}

/* IBTA vol. 1, 10.3.1: unlike a send in error, which an unreliable queue pair survives. */
TEST(unreliable_queue_pair_with_a_receive_in_error_is_in_error)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	struct ibv_send_wr wr;
	struct ibv_sge sge;
	struct rig rig;

	rig_open(&rig, &(struct rig_config){ .type = IBV_QPT_UC });
	wr = rig_wr(&rig, IBV_WR_SEND, &sge, 9);
	rig_receive(&rig.b, 1, 8);
	rig_receive(&rig.b, 2, 8);
	rig_post(&rig.a, &wr);
	rig_wait(rig.b.cq, IBV_WC_LOC_LEN_ERR);
	rig_wait(rig.b.cq, IBV_WC_WR_FLUSH_ERR);
	ibv_query_qp(rig.b.qp, &attr, IBV_QP_STATE, &init);
	ck_assert_int_eq(attr.qp_state, IBV_QPS_ERR);
	rig_close(&rig);
}

static const struct {
	unsigned int granted;
	enum ibv_wr_opcode wanted;
} grants[] = {
	{ IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ, IBV_WR_RDMA_WRITE },
	{ IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE, IBV_WR_RDMA_READ },
	{ IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ, IBV_WR_ATOMIC_FETCH_AND_ADD },
};

TEST_LOOP(operation_that_the_queue_pair_does_not_allow_is_an_invalid_request, 0, 3)
{
	struct ibv_send_wr wr;
	struct ibv_sge sge;
	struct rig rig;

	rig_open(&rig, &(struct rig_config){ .type = IBV_QPT_RC, .access = grants[_i].granted });
	wr = rig_wr(&rig, grants[_i].wanted, &sge, 8);
	expect_failure(&rig, &wr, IBV_WC_REM_INV_REQ_ERR, IBV_EVENT_QP_REQ_ERR);
	rig_close(&rig);
}

TEST(unaligned_atomic_is_an_invalid_request)
{
	struct ibv_send_wr wr;
	struct ibv_sge sge;
	struct rig rig;

	rig_open(&rig, &(struct rig_config){ .type = IBV_QPT_RC });
	wr = rig_wr(&rig, IBV_WR_ATOMIC_FETCH_AND_ADD, &sge, 8);
	wr.wr.atomic.remote_addr += 4;
	expect_failure(&rig, &wr, IBV_WC_REM_INV_REQ_ERR, IBV_EVENT_QP_REQ_ERR);
	rig_close(&rig);
}

TEST(send_that_does_not_fit_fails_at_both_ends)
{
	struct ibv_send_wr wr;
	struct ibv_sge sge;
	struct rig rig;

	rig_open(&rig, &(struct rig_config){ .type = IBV_QPT_RC });
	wr = rig_wr(&rig, IBV_WR_SEND, &sge, 101);
	rig_receive(&rig.b, 1, 100);
	rig_post(&rig.a, &wr);
	rig_wait(rig.b.cq, IBV_WC_LOC_LEN_ERR);
	rig_wait(rig.a.cq, IBV_WC_REM_INV_REQ_ERR);
	rig_close(&rig);
}

TEST(own_memory_without_a_key_is_a_local_protection_error)
{
	struct ibv_send_wr wr;
	struct ibv_sge sge;
	struct rig rig;

	rig_open(&rig, &(struct rig_config){ .type = IBV_QPT_RC });
	wr = rig_wr(&rig, IBV_WR_RDMA_WRITE, &sge, 10);
	wr.wr_id = 1;
	rig_post(&rig.a, &wr);
	sge.lkey ^= 1;
	wr.wr_id = 2;
	rig_post(&rig.a, &wr);
	ck_assert_uint_eq(rig_wait(rig.a.cq, IBV_WC_SUCCESS).wr_id, 1);
	ck_assert_uint_eq(rig_wait(rig.a.cq, IBV_WC_LOC_PROT_ERR).wr_id, 2);
	rig_close(&rig);
}

/* The sends that failed, or were flushed, have taken no PSN of the peer. IBTA 10.3.1.6. */
TEST(unreliable_queue_pair_sends_again_after_an_error_of_its_send_queue)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RTS, .cur_qp_state = IBV_QPS_SQE };
	struct ibv_send_wr wr;
	struct ibv_sge sge;
	struct rig rig;

	rig_open(&rig, &(struct rig_config){ .type = IBV_QPT_UC });
	wr = rig_wr(&rig, IBV_WR_SEND, &sge, 10);
	sge.lkey ^= 1;
	rig_post(&rig.a, &wr);
	rig_wait(rig.a.cq, IBV_WC_LOC_PROT_ERR);
	ck_assert_int_eq(ibv_modify_qp(rig.a.qp, &attr, IBV_QP_STATE | IBV_QP_CUR_STATE), 0);
	sge.lkey ^= 1;
	memcpy(rig.a.memory, "good again", 10);
	rig_receive(&rig.b, 1, 100);
	rig_post(&rig.a, &wr);
	rig_wait(rig.a.cq, IBV_WC_SUCCESS);
	ck_assert_uint_eq(rig_wait(rig.b.cq, IBV_WC_SUCCESS).byte_len, 10);
	ck_assert_int_eq(memcmp(rig.b.memory, "good again", 10), 0);
	rig_close(&rig);
}

TEST_LOOP(empty_write_and_read_need_no_key, 0, 2)
{
	struct ibv_send_wr wr;
	struct ibv_sge sge;
	struct rig rig;

	rig_open(&rig, &(struct rig_config){ .type = IBV_QPT_RC });
	wr = rig_wr(&rig, _i ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE, &sge, 0);
	wr.wr.rdma.rkey = 0;
	rig_post(&rig.a, &wr);
	rig_wait(rig.a.cq, IBV_WC_SUCCESS);
	rig_close(&rig);
}

/* --- slow and ended peers ------------------------------------------------ */

TEST_LOOP(requester_retries_while_the_receiver_is_not_ready, 0, 2)
{
	struct ibv_send_wr wr;
	struct ibv_sge sge;
	struct rig rig;

	rig_open(&rig, &(struct rig_config){ .type = IBV_QPT_RC, .srq = _i });
	wr = rig_wr(&rig, IBV_WR_SEND, &sge, 10);
	rig_post(&rig.a, &wr);
	rig_none(rig.a.cq);
	rig_receive(&rig.b, 1, 10);
	rig_wait(rig.b.cq, IBV_WC_SUCCESS);
	rig_wait(rig.a.cq, IBV_WC_SUCCESS);
	rig_close(&rig);
}

TEST_LOOP(requester_gives_up_a_receiver_that_is_never_ready, 0, 2)
{
	struct ibv_send_wr wr;
	struct ibv_sge sge;
	struct rig rig;

	rig_open(&rig,
		 &(struct rig_config){ .type = IBV_QPT_RC, .rnr_retry = 2, .no_rnr_retry = _i });
	wr = rig_wr(&rig, IBV_WR_SEND, &sge, 10);
	rig_post(&rig.a, &wr);
	rig_wait(rig.a.cq, IBV_WC_RNR_RETRY_EXC_ERR);
	rig_close(&rig);
}

TEST(requester_gives_up_a_peer_that_does_not_answer)
{
	struct ibv_send_wr wr;
	struct ibv_sge sge;
	struct rig rig;

	rig_open(&rig, &(struct rig_config){ .type = IBV_QPT_RC });
	ck_assert_int_eq(rig_modify(&rig, &rig.b, &rig.a, IBV_QPS_ERR, &(struct rig_config){ 0 }),
			 0);
	wr = rig_wr(&rig, IBV_WR_RDMA_WRITE, &sge, 10);
	rig_post(&rig.a, &wr);
	rig_wait(rig.a.cq, IBV_WC_RETRY_EXC_ERR);
	rig_close(&rig);
}

static void drain(struct end *end)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_SQD, .en_sqd_async_notify = 1 };

	ck_assert_int_eq(ibv_modify_qp(end->qp, &attr, IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY),
			 0);
}

static bool is_draining(struct end *end)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	ck_assert_int_eq(ibv_query_qp(end->qp, &attr, IBV_QP_STATE, &init), 0);
	ck_assert_int_eq(attr.qp_state, IBV_QPS_SQD);
	return attr.sq_draining;
}

/* IBTA vol. 1, 10.3.1.5: started requests are completed, also if they must be retransmitted. */
TEST(drained_event_follows_the_last_started_send)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RTS };
	struct ibv_send_wr wr;
	struct ibv_sge sge;
	struct rig rig;

	rig_open(&rig, &(struct rig_config){ .type = IBV_QPT_RC });
	wr = rig_wr(&rig, IBV_WR_SEND, &sge, 10);
	wr.wr_id = 1;
	rig_post(&rig.a, &wr);
	drain(&rig.a);
	wr.wr_id = 2;
	rig_post(&rig.a, &wr);
	ck_assert(is_draining(&rig.a));
	rig_none(rig.a.cq);
	rig_receive(&rig.b, 1, 10);
	rig_receive(&rig.b, 2, 10);
	ck_assert_uint_eq(rig_wait(rig.a.cq, IBV_WC_SUCCESS).wr_id, 1);
	rig_event(&rig, IBV_EVENT_SQ_DRAINED);
	ck_assert(!is_draining(&rig.a));
	rig_none(rig.a.cq);
	ck_assert_int_eq(ibv_modify_qp(rig.a.qp, &attr, IBV_QP_STATE), 0);
	ck_assert_uint_eq(rig_wait(rig.a.cq, IBV_WC_SUCCESS).wr_id, 2);
	rig_close(&rig);
}

TEST_LOOP(send_queue_without_started_sends_is_drained_at_once, 0, 2)
{
	struct rig rig;

	rig_open(&rig, &(struct rig_config){ .type = _i ? IBV_QPT_UC : IBV_QPT_RC });
	drain(&rig.a);
	rig_event(&rig, IBV_EVENT_SQ_DRAINED);
	ck_assert(!is_draining(&rig.a));
	rig_close(&rig);
}

/* --- atomic writes ------------------------------------------------------- */

static struct ibv_send_wr atomic_write(struct rig *rig, struct ibv_sge *sge, uint64_t offset)
{
	struct ibv_send_wr wr = rig_wr(rig, IBV_WR_ATOMIC_WRITE, sge, 8);

	wr.wr.rdma.remote_addr += offset;
	return wr;
}

TEST(atomic_write_stores_eight_bytes)
{
	struct ibv_device_attr_ex device;
	struct ibv_send_wr wr;
	struct ibv_sge sge;
	struct rig rig;

	rig_open(&rig, &(struct rig_config){ .type = IBV_QPT_RC });
	ck_assert_int_eq(ibv_query_device_ex(rig.verbs, NULL, &device), 0);
	ck_assert(device.device_cap_flags_ex & UINT64_C(1) << 40);
	memcpy(rig.a.memory, "elephant", 8);
	wr = atomic_write(&rig, &sge, 16);
	rig_post(&rig.a, &wr);
	ck_assert_int_eq(rig_wait(rig.a.cq, IBV_WC_SUCCESS).opcode, IBV_WC_ATOMIC_WRITE);
	ck_assert_int_eq(memcmp(rig.b.memory + 16, "elephant", 8), 0);
	ck_assert_int_eq(memcmp(rig.a.memory, "elephant", 8), 0);
	rig_close(&rig);
}

TEST(atomic_writes_and_reads_keep_their_order)
{
	struct ibv_send_wr wr;
	struct ibv_sge sge;
	struct rig rig;
	uint64_t i;

	rig_open(&rig, &(struct rig_config){ .type = IBV_QPT_RC });
	for (i = 0; i < 20; i++) {
		wr = atomic_write(&rig, &sge, 0);
		if (i % 2)
			wr = rig_wr(&rig, IBV_WR_RDMA_READ, &sge, 8);
		sge.addr += 8 * i;
		memcpy(rig.a.memory + 8 * i, &i, 8);
		wr.wr_id = i;
		rig_post(&rig.a, &wr);
	}
	for (i = 0; i < 20; i++)
		ck_assert_uint_eq(rig_wait(rig.a.cq, IBV_WC_SUCCESS).wr_id, i);
	for (i = 1; i < 20; i += 2)
		ck_assert_int_eq(memcmp(rig.a.memory + 8 * i, rig.a.memory + 8 * i - 8, 8), 0);
	rig_close(&rig);
}

TEST(unaligned_atomic_write_is_an_invalid_request)
{
	struct ibv_send_wr wr;
	struct ibv_sge sge;
	struct rig rig;

	rig_open(&rig, &(struct rig_config){ .type = IBV_QPT_RC });
	wr = atomic_write(&rig, &sge, 4);
	rig_post(&rig.a, &wr);
	rig_wait(rig.a.cq, IBV_WC_REM_INV_REQ_ERR);
	rig_event(&rig, IBV_EVENT_QP_REQ_ERR);
	rig_close(&rig);
}

TEST(atomic_write_needs_remote_write_access)
{
	struct ibv_send_wr wr;
	struct ibv_sge sge;
	struct rig rig;

	rig_open(&rig, &(struct rig_config){ .access = IBV_ACCESS_LOCAL_WRITE |
						       IBV_ACCESS_REMOTE_ATOMIC });
	wr = atomic_write(&rig, &sge, 0);
	rig_post(&rig.a, &wr);
	rig_wait(rig.a.cq, IBV_WC_REM_INV_REQ_ERR);
	rig_event(&rig, IBV_EVENT_QP_REQ_ERR);
	rig_close(&rig);
}

TEST(atomic_write_has_eight_bytes)
{
	struct ibv_send_wr *bad, wr;
	struct ibv_sge sge;
	struct rig rig;

	rig_open(&rig, &(struct rig_config){ .type = IBV_QPT_RC });
	wr = rig_wr(&rig, IBV_WR_ATOMIC_WRITE, &sge, 16);
	ck_assert_int_eq(ibv_post_send(rig.a.qp, &wr, &bad), EINVAL);
	rig_close(&rig);
}

TEST(function_of_an_extended_queue_pair_writes_atomically)
{
	struct ibv_qp_ex *ex;
	struct rig rig;

	rig_open(&rig, &(struct rig_config){ .send_ops = IBV_QP_EX_WITH_ATOMIC_WRITE });
	ex = ibv_qp_to_qp_ex(rig.a.qp);
	ibv_wr_start(ex);
	ex->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_atomic_write(ex, rig.b.mr->rkey, (uintptr_t)rig.b.memory, "elephant");
	ck_assert_int_eq(ibv_wr_complete(ex), 0);
	rig_wait(rig.a.cq, IBV_WC_SUCCESS);
	ck_assert_int_eq(memcmp(rig.b.memory, "elephant", 8), 0);
	rig_close(&rig);
}
