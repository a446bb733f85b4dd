/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A reliable connection delivers all bytes once and in order while packets are lost, duplicated and
 * reordered. Runs on a host of a soft fabric with such faults: tests/fabric/meson.build.
 */
#include <arpa/inet.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/fabric/rig.h"
#include "tests/unit/test.h"

#define N_SENDS	  500
#define N_ATOMICS 200
#define N_WRITES  300
#define N_LIVES	  4

static const struct rig_config rc = { .type = IBV_QPT_RC };

TEST(sends_arrive_once_and_in_order)
{
	struct ibv_send_wr wr;
	struct ibv_sge sge;
	struct ibv_wc wc;
	struct rig rig;
	uint32_t i;

	rig_open(&rig, &rc);
	for (i = 0; i < N_SENDS; i++) {
		rig_receive(&rig.b, i, 100);
		wr = rig_wr(&rig, IBV_WR_SEND_WITH_IMM, &sge, 100);
		wr.imm_data = htonl(i);
		rig_post(&rig.a, &wr);
		if (i % 16 != 15)
			continue;
		for (uint32_t j = i - 15; j <= i; j++) {
			wc = rig_wait(rig.b.cq, IBV_WC_SUCCESS);
			ck_assert_uint_eq(wc.wr_id, j);
			ck_assert_uint_eq(ntohl(wc.imm_data), j);
			rig_wait(rig.a.cq, IBV_WC_SUCCESS);
		}
	}
	rig_close(&rig);
}

TEST(long_messages_arrive_complete)
{
	char *copy = malloc(RIG_BYTES);
	struct ibv_send_wr wr;
	struct ibv_sge sge;
	struct rig rig;
	int i;

	rig_open(&rig, &rc);
	for (i = 0; i < RIG_BYTES; i++)
		rig.a.memory[i] = (char)(i * 31 + i / 4099);
	memcpy(copy, rig.a.memory, RIG_BYTES);
	wr = rig_wr(&rig, IBV_WR_RDMA_WRITE, &sge, RIG_BYTES);
	rig_post(&rig.a, &wr);
	rig_wait(rig.a.cq, IBV_WC_SUCCESS);
	ck_assert_int_eq(memcmp(rig.b.memory, copy, RIG_BYTES), 0);
	memset(rig.a.memory, 0, RIG_BYTES);
	wr.opcode = IBV_WR_RDMA_READ;
	rig_post(&rig.a, &wr);
	rig_wait(rig.a.cq, IBV_WC_SUCCESS);
	ck_assert_int_eq(memcmp(rig.a.memory, copy, RIG_BYTES), 0);
	free(copy);
	rig_close(&rig);
}

TEST(atomics_are_executed_once)
{
	struct ibv_send_wr wr;
	struct ibv_sge sge;
	struct rig rig;
	uint64_t i;

	rig_open(&rig, &rc);
	wr = rig_wr(&rig, IBV_WR_ATOMIC_FETCH_AND_ADD, &sge, 8);
	wr.wr.atomic.compare_add = 1;
	for (i = 0; i < N_ATOMICS; i++) {
		rig_post(&rig.a, &wr);
		rig_wait(rig.a.cq, IBV_WC_SUCCESS);
		ck_assert_uint_eq(*(uint64_t *)rig.a.memory, i);
	}
	ck_assert_uint_eq(*(uint64_t *)rig.b.memory, N_ATOMICS);
	rig_close(&rig);
}

static void connect_again(struct rig *rig, struct end *end, const struct end *peer)
{
	enum ibv_qp_state state;

	ck_assert_int_eq(rig_modify(rig, end, peer, IBV_QPS_RESET, &rc), 0);
	for (state = IBV_QPS_INIT; state <= IBV_QPS_RTS; state++)
		ck_assert_int_eq(rig_modify(rig, end, peer, state, &rc), 0);
}

/* Numbers are the same in each round, so a response of an earlier one would match. */
TEST(reset_queue_pair_forgets_results_of_atomics)
{
	struct ibv_send_wr wr;
	struct ibv_sge sge;
	struct rig rig;
	uint64_t i;

	rig_open(&rig, &rc);
	wr = rig_wr(&rig, IBV_WR_ATOMIC_FETCH_AND_ADD, &sge, 8);
	wr.wr.atomic.compare_add = 1;
	for (i = 0; i < N_LIVES * 30; i++) {
		if (i && i % 30 == 0) {
			connect_again(&rig, &rig.a, &rig.b);
			connect_again(&rig, &rig.b, &rig.a);
		}
		rig_post(&rig.a, &wr);
		rig_wait(rig.a.cq, IBV_WC_SUCCESS);
		ck_assert_uint_eq(*(uint64_t *)rig.a.memory, i);
	}
	rig_close(&rig);
}

static void await_byte(const char *at, char wanted)
{
	int left = 200000;

	while (__atomic_load_n(at, __ATOMIC_ACQUIRE) != wanted && left--)
		usleep(1);
	ck_assert_int_ge(left, 0);
}

/*
 * A program may answer in place of the last byte before the sender knows that it arrived; without a
 * timely acknowledgement, the byte is retransmitted.
 */
TEST(writes_are_stored_once)
{
	struct ibv_send_wr wr;
	struct ibv_sge sge;
	struct rig rig;
	char answer[64];
	int i;

	memset(answer, 'b', sizeof(answer));
	rig_open(&rig, &rc);
	wr = rig_wr(&rig, IBV_WR_RDMA_WRITE, &sge, sizeof(answer));
	memset(rig.a.memory, 'a', sizeof(answer));
	for (i = 0; i < N_WRITES; i++) {
		rig_post(&rig.a, &wr);
		await_byte(rig.b.memory + sizeof(answer) - 1, 'a');
		ck_assert_int_eq(memcmp(rig.b.memory, rig.a.memory, sizeof(answer)), 0);
		memcpy(rig.b.memory, answer, sizeof(answer));
		rig_wait(rig.a.cq, IBV_WC_SUCCESS);
		ck_assert_int_eq(memcmp(rig.b.memory, answer, sizeof(answer)), 0);
	}
	rig_close(&rig);
}
