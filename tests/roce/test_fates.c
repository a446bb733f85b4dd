/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Each operation between two devices, while each of its first packets is lost, repeated, overtaken,
 * delayed until it was sent again, or corrupted, alone and in pairs: all complete, once and in
 * order, with the right bytes.
 */
#include <string.h>

#include "tests/roce/world.h"
#include "tests/unit/test.h"

#define FIRST_PACKETS 10
#define BYTES	      1200 /* five packets of the smallest path MTU */
#define FROM	      0	   /* in the memory of an end: what is sent, and where it comes to */
#define TO	      8192
#define RECEIVED      16384
#define COUNTER	      32768
#define OPS_MAX	      8

struct plan {
	const char *name;
	enum ibv_qp_type type;
	unsigned int n_ops;
	enum ibv_wr_opcode op[OPS_MAX];
	unsigned int flags; /* of all */
};

static const struct plan plans[] = {
	{"SEND",		  IBV_QPT_RC, 1, { IBV_WR_SEND },		  0},
	{ "SEND with immediate",	 IBV_QPT_RC, 1, { IBV_WR_SEND_WITH_IMM },	  0},
	{ "WRITE",		   IBV_QPT_RC, 1, { IBV_WR_RDMA_WRITE },		 0},
	{ "WRITE with immediate", IBV_QPT_RC, 1, { IBV_WR_RDMA_WRITE_WITH_IMM },	 0},
	{ "READ",		  IBV_QPT_RC, 1, { IBV_WR_RDMA_READ },	       0},
	{ "COMPARE SWAP",	  IBV_QPT_RC, 1, { IBV_WR_ATOMIC_CMP_AND_SWP },	0},
	{ "FETCH ADD",	       IBV_QPT_RC, 1, { IBV_WR_ATOMIC_FETCH_AND_ADD }, 0},
	{ "atomics",
	  IBV_QPT_RC,			  4,
	  { IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_WR_ATOMIC_FETCH_AND_ADD,
	    IBV_WR_ATOMIC_FETCH_AND_ADD },
	  0									 },
	{ "all of them",
	  IBV_QPT_RC,			  7,
	  { IBV_WR_SEND, IBV_WR_RDMA_READ, IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_WR_RDMA_WRITE_WITH_IMM,
	    IBV_WR_RDMA_READ, IBV_WR_SEND_WITH_IMM, IBV_WR_RDMA_WRITE },
	  0									 },
	{ "all of them, fenced",
	  IBV_QPT_RC,			  6,
	  { IBV_WR_RDMA_READ, IBV_WR_SEND, IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_WR_RDMA_WRITE,
	    IBV_WR_RDMA_READ, IBV_WR_SEND_WITH_IMM },
	  IBV_SEND_FENCE							    },
};
#define N_PLANS (sizeof(plans) / sizeof(plans[0]))

struct fates {
	unsigned int number[2];
	enum fate fate[2];
};

static enum fate fate_of(unsigned int number, void *arg)
{
	const struct fates *fates = arg;

	if (number == fates->number[0])
		return fates->fate[0];
	return number == fates->number[1] ? fates->fate[1] : FATE_ARRIVES;
}

static bool is_atomic(enum ibv_wr_opcode op)
{
	return op == IBV_WR_ATOMIC_CMP_AND_SWP || op == IBV_WR_ATOMIC_FETCH_AND_ADD;
}

static bool takes_receive(enum ibv_wr_opcode op)
{
	return op == IBV_WR_SEND || op == IBV_WR_SEND_WITH_IMM || op == IBV_WR_RDMA_WRITE_WITH_IMM;
}

static void post_all(struct world *world, const struct plan *plan)
{
	unsigned int i;

	for (i = 0; i < sizeof(world->end[0].memory) / 2; i++)
		world->end[0].memory[i] = (uint8_t)(i * 7 + i / 256);
	for (i = 0; i < BYTES; i++)
		world->end[1].memory[i] = (uint8_t)(i * 5 + 3);
	for (i = 0; i < plan->n_ops; i++)
		world_receive(world, 1, 100 + i, RECEIVED + i * 2048, BYTES);
	for (i = 0; i < plan->n_ops; i++) {
		struct ibv_send_wr wr = { .wr_id = i,
					  .opcode = plan->op[i],
					  .send_flags = plan->flags,
					  .imm_data = 0x1000 + i };

		if (is_atomic(plan->op[i])) {
			wr.wr.atomic.compare_add = plan->op[i] == IBV_WR_ATOMIC_CMP_AND_SWP ? 0 : 3;
			wr.wr.atomic.swap = 77;
			ck_assert_int_eq(world_post(world, 0, &wr, COUNTER + 8 * i, COUNTER, 8), 0);
		} else if (plan->op[i] == IBV_WR_RDMA_READ) {
			ck_assert_int_eq(world_post(world, 0, &wr, TO, FROM, BYTES), 0);
		} else {
			ck_assert_int_eq(world_post(world, 0, &wr, FROM, TO, BYTES), 0);
		}
	}
}

/* Of the requester: in the order of the requests. */
static void check_sends(struct world *world, const struct plan *plan)
{
	uint64_t value, counter = 0;
	struct ibv_wc wc;
	unsigned int i;

	for (i = 0; i < plan->n_ops; i++) {
		ck_assert_int_eq(ibv_poll_cq(world->end[0].cq, 1, &wc), 1);
		ck_assert_int_eq(wc.status, IBV_WC_SUCCESS);
		ck_assert_uint_eq(wc.wr_id, i);
		if (!is_atomic(plan->op[i]))
			continue;
		memcpy(&value, world->end[0].memory + COUNTER + (size_t)8 * i, sizeof(value));
		ck_assert_uint_eq(value, counter);
		counter = plan->op[i] == IBV_WR_ATOMIC_CMP_AND_SWP ? 77 : counter + 3;
	}
	ck_assert_int_eq(ibv_poll_cq(world->end[0].cq, 1, &wc), 0);
	memcpy(&value, world->end[1].memory + COUNTER, sizeof(value));
	ck_assert_uint_eq(value, counter);
}

/* Of the responder: a receive for each that takes one. */
static void check_receives(struct world *world, const struct plan *plan)
{
	unsigned int i, n = 0;
	struct ibv_wc wc;

	for (i = 0; i < plan->n_ops; i++) {
		if (!takes_receive(plan->op[i]))
			continue;
		ck_assert_int_eq(ibv_poll_cq(world->end[1].cq, 1, &wc), 1);
		ck_assert_int_eq(wc.status, IBV_WC_SUCCESS);
		ck_assert_uint_eq(wc.wr_id, 100 + n);
		ck_assert_uint_eq(wc.byte_len, BYTES);
		if (wc.wc_flags & IBV_WC_WITH_IMM)
			ck_assert_uint_eq(wc.imm_data, 0x1000 + i);
		ck_assert_int_eq(!!(wc.wc_flags & IBV_WC_WITH_IMM), plan->op[i] != IBV_WR_SEND);
		if (plan->op[i] != IBV_WR_RDMA_WRITE_WITH_IMM)
			ck_assert_mem_eq(world->end[1].memory + RECEIVED + (size_t)n * 2048,
					 world->end[0].memory + FROM, BYTES);
		n++;
	}
	ck_assert_int_eq(ibv_poll_cq(world->end[1].cq, 1, &wc), 0);
}

static void check_memory(struct world *world, const struct plan *plan)
{
	unsigned int i;

	for (i = 0; i < plan->n_ops; i++) {
		if (plan->op[i] == IBV_WR_RDMA_READ)
			ck_assert_mem_eq(world->end[0].memory + TO, world->end[1].memory + FROM,
					 BYTES);
		if (plan->op[i] == IBV_WR_RDMA_WRITE || plan->op[i] == IBV_WR_RDMA_WRITE_WITH_IMM)
			ck_assert_mem_eq(world->end[1].memory + TO, world->end[0].memory + FROM,
					 BYTES);
	}
}

static void play(const struct plan *plan, struct fates *fates, uint32_t psn)
{
	struct world *world = world_open(&(struct world_config){ .type = plan->type, .psn = psn });

	world->fate_of = fate_of;
	world->arg = fates;
	post_all(world, plan);
	world_run(world);
	check_sends(world, plan);
	check_receives(world, plan);
	check_memory(world, plan);
	world_close(world);
}

TIME_LIMIT_S(300);

TEST_LOOP(each_fate_of_each_of_the_first_packets, 0, N_PLANS)
{
	struct fates fates = {
		.number = {0, UINT32_MAX}
	};

	for (fates.number[0] = 0; fates.number[0] < FIRST_PACKETS; fates.number[0]++)
		for (fates.fate[0] = FATE_ARRIVES; fates.fate[0] < N_FATES; fates.fate[0]++)
			play(&plans[_i], &fates, 0);
}

/* Also where PSNs wrap around. */
TEST_LOOP(each_two_fates_of_the_first_packets, 0, N_PLANS)
{
	struct fates fates;

	for (fates.number[0] = 0; fates.number[0] < FIRST_PACKETS; fates.number[0]++)
		for (fates.number[1] = fates.number[0] + 1; fates.number[1] < FIRST_PACKETS;
		     fates.number[1]++)
			for (fates.fate[0] = FATE_LOST; fates.fate[0] < N_FATES; fates.fate[0]++)
				for (fates.fate[1] = FATE_LOST; fates.fate[1] < N_FATES;
				     fates.fate[1]++)
					play(&plans[_i], &fates, FAB_PSN_MASK - 2);
}
