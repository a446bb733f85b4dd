/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Random programs on a random wire: both ends send, write, read and count at once, with messages of
 * any length, while packets are lost, duplicated, overtaken, delayed and corrupted. All complete in
 * order; each receive holds what was sent; unreliable messages arrive whole or not at all.
 */
#include <string.h>

#include "tests/roce/world.h"
#include "tests/unit/test.h"

/* A sanitizer makes each run ten times as slow; the plain build has all of them. */
#ifdef __SANITIZE_ADDRESS__
#define PROGRAMS 80
#else
#define PROGRAMS 400
#endif
#define OPS	    24
#define SENT_AT	    0	      /* OPS messages, which are never overwritten */
#define RECEIVED_AT (1 << 14) /* one for each message that needs a receive */
#define READ_AT	    (1 << 15) /* data read from the peer */
#define STEP	    640
#define DISORDER    60
#define COUNTER_AT  (WORLD_BYTES - 8)

struct op {
	enum ibv_wr_opcode opcode;
	uint32_t bytes;
	uint32_t at; /* in the sender's memory */
};

struct program {
	struct op op[2][OPS];
	unsigned int percent; /* of packets with faults; DISORDER: delayed or duplicated */
	uint64_t random;
};

static uint32_t next(struct program *program, uint32_t below)
{
	uint64_t z = program->random += 0x9e3779b97f4a7c15ull;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ z >> 27) * 0x94d049bb133111ebull;
	return (uint32_t)((z ^ z >> 31) % below);
}

static enum fate fate_of(unsigned int number, void *arg)
{
	struct program *program = arg;

	(void)number;
	if (next(program, 100) >= program->percent)
		return FATE_ARRIVES;
	if (program->percent == DISORDER)
		return next(program, 2) ? FATE_OVERTAKEN : FATE_REPEATED;
	return (enum fate)(1 + next(program, N_FATES - 1));
}

static bool takes_receive(enum ibv_wr_opcode opcode)
{
	return opcode == IBV_WR_SEND || opcode == IBV_WR_SEND_WITH_IMM ||
	       opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
}

static uint8_t byte_of(unsigned int end, uint32_t at)
{
	return (uint8_t)(at * 31 + at / 251 + end * 101);
}

static void fill(struct world *world)
{
	unsigned int end;
	uint32_t at;

	for (end = 0; end < 2; end++)
		for (at = 0; at < RECEIVED_AT; at++)
			world->end[end].memory[SENT_AT + at] = byte_of(end, at);
}

/* Writes have memory of their own: each goes to the receive area of the peer, like a send. */
static void post(struct world *world, struct program *program, unsigned int end, unsigned int i)
{
	struct op *op = &program->op[end][i];
	struct ibv_send_wr wr = { .wr_id = i, .opcode = op->opcode, .imm_data = i };

	if (op->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		wr.wr.atomic.compare_add = 1;
		ck_assert_int_eq(world_post(world, end, &wr, READ_AT + i * STEP, COUNTER_AT, 8), 0);
	} else if (op->opcode == IBV_WR_RDMA_READ) {
		ck_assert_int_eq(world_post(world, end, &wr, READ_AT + i * STEP, op->at, op->bytes),
				 0);
	} else {
		ck_assert_int_eq(
			world_post(world, end, &wr, op->at, RECEIVED_AT + i * STEP, op->bytes), 0);
	}
}

static void choose(struct program *program, enum ibv_qp_type type)
{
	static const enum ibv_wr_opcode reliable[] = {
		IBV_WR_SEND,	   IBV_WR_SEND_WITH_IMM,
		IBV_WR_RDMA_WRITE, IBV_WR_RDMA_WRITE_WITH_IMM,
		IBV_WR_RDMA_READ,  IBV_WR_ATOMIC_FETCH_AND_ADD
	};
	unsigned int end, i;

	for (end = 0; end < 2; end++)
		for (i = 0; i < OPS; i++) {
			struct op *op = &program->op[end][i];

			op->opcode = reliable[next(program, type == IBV_QPT_RC ? 6 : 4)];
			op->bytes = next(program, 4) ? next(program, STEP + 1) : 0;
			op->at = next(program, RECEIVED_AT - STEP);
		}
}

static void check_bytes(const struct world *world, unsigned int end, uint32_t to,
			unsigned int from_end, const struct op *op)
{
	uint32_t i;

	for (i = 0; i < op->bytes; i++)
		ck_assert_uint_eq(world->end[end].memory[to + i], byte_of(from_end, op->at + i));
}

/* Completions of an end: its sends in order, and the peer's messages. */
static void check_completions(struct world *world, const struct program *program, unsigned int end)
{
	const struct op *theirs = program->op[!end];
	unsigned int n_sends = 0, at = 0;
	struct ibv_wc wc;

	while (ibv_poll_cq(world->end[end].cq, 1, &wc) == 1) {
		ck_assert_int_eq(wc.status, IBV_WC_SUCCESS);
		if (!(wc.opcode & IBV_WC_RECV)) {
			ck_assert_uint_eq(wc.wr_id, n_sends++);
			continue;
		}
		while (!takes_receive(theirs[at].opcode))
			at++;
		ck_assert_uint_eq(wc.byte_len, theirs[at].bytes);
		if (theirs[at].opcode != IBV_WR_SEND)
			ck_assert_uint_eq(wc.imm_data, at);
		check_bytes(world, end,
			    theirs[at].opcode == IBV_WR_RDMA_WRITE_WITH_IMM
				    ? RECEIVED_AT + at * STEP
				    : (uint32_t)wc.wr_id,
			    !end, &theirs[at]);
		at++;
	}
	while (at < OPS && !takes_receive(theirs[at].opcode))
		at++;
	ck_assert_uint_eq(n_sends, OPS);
	ck_assert_uint_eq(at, OPS);
}

static unsigned int count_atomics(const struct program *program, unsigned int end)
{
	unsigned int i, n = 0;

	for (i = 0; i < OPS; i++)
		n += program->op[end][i].opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
	return n;
}

static void check_memory(const struct world *world, const struct program *program, unsigned int end)
{
	uint64_t counter;
	unsigned int i;

	for (i = 0; i < OPS; i++) {
		const struct op *op = &program->op[end][i];

		if (op->opcode == IBV_WR_RDMA_READ)
			check_bytes(world, end, READ_AT + i * STEP, !end, op);
		if (op->opcode == IBV_WR_RDMA_WRITE)
			check_bytes(world, !end, RECEIVED_AT + i * STEP, end, op);
	}
	memcpy(&counter, world->end[!end].memory + COUNTER_AT, sizeof(counter));
	ck_assert_uint_eq(counter, count_atomics(program, end));
}

/* The receives of an end: a place of its own for each send of the peer. */
static void post_receives(struct world *world, const struct program *program, unsigned int end)
{
	unsigned int i;

	for (i = 0; i < OPS; i++)
		if (takes_receive(program->op[!end][i].opcode))
			world_receive(world, end, RECEIVED_AT + i * STEP, RECEIVED_AT + i * STEP,
				      STEP);
}

static void play(unsigned int seed, uint8_t max_rd_atomic)
{
	struct program program = { .random = seed,
				   .percent = seed % 5 == 4 ? DISORDER : seed % 5 * 5 };
	struct world *world;
	unsigned int end, i;

	choose(&program, IBV_QPT_RC);
	world = world_open(&(struct world_config){ .type = IBV_QPT_RC,
						   .psn = next(&program, FAB_PSN_MASK + 1),
						   .max_rd_atomic = max_rd_atomic });
	fill(world);
	/* Receives are posted late, so that some requests find none. */
	world->fate_of = fate_of;
	world->arg = &program;
	for (i = 0; i < OPS; i++)
		for (end = 0; end < 2; end++)
			post(world, &program, end, i);
	world_run_for(world, next(&program, 3) * 20000);
	for (end = 0; end < 2; end++)
		post_receives(world, &program, end);
	world_run(world);
	for (end = 0; end < 2; end++) {
		check_completions(world, &program, end);
		check_memory(world, &program, end);
	}
	world_close(world);
}

TEST(reliable_operations_complete_on_any_wire)
{
	for (unsigned int seed = 0; seed < PROGRAMS; seed++)
		play(seed, (uint8_t)(1 + seed % 4));
}

/* A message in the peer's memory is complete and correct, or absent. */
TEST(unreliable_messages_arrive_complete_or_not_at_all)
{
	unsigned int seed, i, n_received = 0;

	for (seed = 0; seed < PROGRAMS; seed++) {
		struct program program = { .random = seed, .percent = 10 };
		struct world *world = world_open(&(struct world_config){ .type = IBV_QPT_UC });
		struct ibv_wc wc;

		fill(world);
		world->fate_of = fate_of;
		world->arg = &program;
		for (i = 0; i < OPS; i++)
			world_receive(world, 1, RECEIVED_AT + i * STEP, RECEIVED_AT + i * STEP,
				      STEP);
		for (i = 0; i < OPS; i++) {
			struct ibv_send_wr wr = { .wr_id = i,
						  .opcode = IBV_WR_SEND_WITH_IMM,
						  .imm_data = i };

			ck_assert_int_eq(world_post(world, 0, &wr, i * 13, 0, 500 + i), 0);
		}
		world_run(world);
		while (ibv_poll_cq(world->end[1].cq, 1, &wc) == 1) {
			struct op op = { .at = wc.imm_data * 13, .bytes = 500 + wc.imm_data };

			ck_assert_int_eq(wc.status, IBV_WC_SUCCESS);
			ck_assert_uint_eq(wc.byte_len, op.bytes);
			check_bytes(world, 1, (uint32_t)wc.wr_id, 0, &op);
			n_received++;
		}
		world_close(world);
	}
	ck_assert_uint_gt(n_received, PROGRAMS * OPS / 3);
}
