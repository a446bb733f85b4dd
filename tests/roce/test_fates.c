/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Each operation between two devices, while each of its first packets is lost, duplicated,
 * overtaken, delayed until its retransmission, or corrupted, alone and in pairs: all operations
 * complete once and in order, with the right data. Datagrams share the fates of their packets.
 */
#include <string.h>

#include "tests/roce/world.h"
#include "tests/unit/test.h"

#define FIRST_PACKETS 10
#define BYTES	      1200 /* five packets of the smallest path MTU */
#define FROM	      0	   /* memory of an end: data to send, and received data */
#define TO	      8192
#define RECEIVED      16384
#define COUNTER	      32768
#define OPS_MAX	      8

struct plan {
	const char *name;
	enum ibv_qp_type type;
	unsigned int n_ops;
	enum ibv_wr_opcode op[OPS_MAX];
	unsigned int flags; /* of all sends */
};

static const struct plan plans[] = {
	{ "SEND", IBV_QPT_RC, 1, { IBV_WR_SEND }, 0 },
	{ "SEND with immediate", IBV_QPT_RC, 1, { IBV_WR_SEND_WITH_IMM }, 0 },
	{ "WRITE", IBV_QPT_RC, 1, { IBV_WR_RDMA_WRITE }, 0 },
	{ "WRITE with immediate", IBV_QPT_RC, 1, { IBV_WR_RDMA_WRITE_WITH_IMM }, 0 },
	{ "READ", IBV_QPT_RC, 1, { IBV_WR_RDMA_READ }, 0 },
	{ "COMPARE SWAP", IBV_QPT_RC, 1, { IBV_WR_ATOMIC_CMP_AND_SWP }, 0 },
	{ "FETCH ADD", IBV_QPT_RC, 1, { IBV_WR_ATOMIC_FETCH_AND_ADD }, 0 },
	{ "atomics",
	  IBV_QPT_RC,
	  4,
	  { IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_WR_ATOMIC_FETCH_AND_ADD,
	    IBV_WR_ATOMIC_FETCH_AND_ADD },
	  0 },
	{ "all of them",
	  IBV_QPT_RC,
	  7,
	  { IBV_WR_SEND, IBV_WR_RDMA_READ, IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_WR_RDMA_WRITE_WITH_IMM,
	    IBV_WR_RDMA_READ, IBV_WR_SEND_WITH_IMM, IBV_WR_RDMA_WRITE },
	  0 },
	{ "all of them, fenced",
	  IBV_QPT_RC,
	  6,
	  { IBV_WR_RDMA_READ, IBV_WR_SEND, IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_WR_RDMA_WRITE,
	    IBV_WR_RDMA_READ, IBV_WR_SEND_WITH_IMM },
	  IBV_SEND_FENCE },
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

/* The requester must report sends in the order of the requests. */
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

/* The responder must complete one receive for each operation that needs one. */
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

TEST_LOOP(operations_survive_each_fate_of_each_early_packet, 0, N_PLANS)
{
	struct fates fates = { .number = { 0, UINT32_MAX } };

	for (fates.number[0] = 0; fates.number[0] < FIRST_PACKETS; fates.number[0]++)
		for (fates.fate[0] = FATE_ARRIVES; fates.fate[0] < N_FATES; fates.fate[0]++)
			play(&plans[_i], &fates, 0);
}

/* Includes the wrap of PSNs. */
TEST_LOOP(operations_survive_each_two_fates_of_early_packets, 0, N_PLANS)
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

/* --- datagrams ----------------------------------------------------------- */

#define DATAGRAMS     4
#define GRH_BYTES     40
#define DATAGRAM_ROOM 512

/* An empty one, and a full one. */
static const uint32_t datagram_bytes[DATAGRAMS] = { 100, 0, 256, 3 };

/* Order of arrival of complete datagrams: those of one value in the order of sending. */
static unsigned int arrival_of(enum fate fate)
{
	return fate == FATE_DELAYED ? 2 : fate == FATE_OVERTAKEN;
}

static unsigned int arrivals_of(enum fate fate)
{
	static const unsigned int n[N_FATES] = {
		[FATE_ARRIVES] = 1, [FATE_REPEATED] = 2, [FATE_OVERTAKEN] = 1, [FATE_DELAYED] = 1
	};

	return n[fate];
}

static void send_datagrams(struct world *world)
{
	struct ibv_ah_attr *attr = &to_qp(world->end[0].qp)->attr.ah_attr;
	struct ibv_ah *ah;
	unsigned int i;

	attr->grh.dgid = world->end[1].page.port[0].gid[0].gid;
	attr->grh.hop_limit = 64;
	attr->is_global = attr->port_num = 1;
	ah = ibv_create_ah(world->end[0].pd, attr);
	ck_assert_ptr_nonnull(ah);
	for (i = 0; i < DATAGRAMS; i++) {
		struct ibv_send_wr wr = {
			.wr_id = i,
			.opcode = IBV_WR_SEND_WITH_IMM,
			.imm_data = i,
			.wr.ud = { ah, world->end[1].qp->qp_num, 0x11 },
		};

		ck_assert_int_eq(
			world_post(world, 0, &wr, FROM + (size_t)i * 256, 0, datagram_bytes[i]), 0);
	}
	ck_assert_int_eq(ibv_destroy_ah(ah), 0);
}

static void check_sent(struct world *world)
{
	struct ibv_wc wc;
	unsigned int i;

	for (i = 0; i < DATAGRAMS; i++) {
		ck_assert_int_eq(ibv_poll_cq(world->end[0].cq, 1, &wc), 1);
		ck_assert_int_eq(wc.status, IBV_WC_SUCCESS);
		ck_assert_uint_eq(wc.wr_id, i);
	}
	ck_assert_int_eq(ibv_poll_cq(world->end[0].cq, 1, &wc), 0);
}

/* The next receive contains datagram @i, and the addresses of its IPv4 header. */
static void check_arrived(struct world *world, unsigned int i)
{
	const uint8_t *received;
	struct ibv_wc wc;

	ck_assert_int_eq(ibv_poll_cq(world->end[1].cq, 1, &wc), 1);
	ck_assert_int_eq(wc.status, IBV_WC_SUCCESS);
	ck_assert_uint_eq(wc.imm_data, i);
	ck_assert_uint_eq(wc.byte_len, GRH_BYTES + datagram_bytes[i]);
	ck_assert_uint_eq(wc.src_qp, world->end[0].qp->qp_num);
	ck_assert_uint_eq(wc.wc_flags, IBV_WC_GRH | IBV_WC_WITH_IMM);
	received = world->end[1].memory + RECEIVED + wc.wr_id * DATAGRAM_ROOM;
	ck_assert_uint_eq(received[20], 0x45);
	ck_assert_mem_eq(received + 32, world->end[0].page.port[0].gid[0].gid.raw + 12, 4);
	ck_assert_mem_eq(received + 36, world->end[1].page.port[0].gid[0].gid.raw + 12, 4);
	ck_assert_mem_eq(received + GRH_BYTES, world->end[0].memory + FROM + (size_t)i * 256,
			 datagram_bytes[i]);
}

static void play_datagrams(const struct fates *fates)
{
	struct world *world = world_open(&(struct world_config){ .type = IBV_QPT_UD });
	unsigned int i, n, order;
	struct ibv_wc wc;

	for (i = 0; i < DATAGRAMS * 256; i++)
		world->end[0].memory[FROM + i] = (uint8_t)(i * 7 + i / 256);
	for (i = 0; i < 2 * DATAGRAMS; i++)
		world_receive(world, 1, i, RECEIVED + (size_t)i * DATAGRAM_ROOM, DATAGRAM_ROOM);
	world->fate_of = fate_of;
	world->arg = (void *)(uintptr_t)fates;
	send_datagrams(world);
	world_run(world);
	check_sent(world);
	for (order = 0; order < 3; order++)
		for (i = 0; i < DATAGRAMS; i++)
			for (n = 0; arrival_of(fate_of(i, world->arg)) == order &&
				    n < arrivals_of(fate_of(i, world->arg));
			     n++)
				check_arrived(world, i);
	ck_assert_int_eq(ibv_poll_cq(world->end[1].cq, 1, &wc), 0);
	world_close(world);
}

TEST(datagrams_share_the_fates_of_their_packets)
{
	struct fates fates;

	for (fates.number[0] = 0; fates.number[0] < DATAGRAMS; fates.number[0]++)
		for (fates.number[1] = fates.number[0] + 1; fates.number[1] < DATAGRAMS;
		     fates.number[1]++)
			for (fates.fate[0] = FATE_ARRIVES; fates.fate[0] < N_FATES; fates.fate[0]++)
				for (fates.fate[1] = FATE_ARRIVES; fates.fate[1] < N_FATES;
				     fates.fate[1]++)
					play_datagrams(&fates);
}
