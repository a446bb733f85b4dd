/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory of a queue pair, whatever its peer sends: the figures of docs/fabric.md, "Memory". Counted
 * by malloc itself; a sanitizer's malloc counts nothing.
 */
#include <malloc.h>

#include "tests/roce/world.h"
#include "tests/unit/test.h"

#define PAIR_BYTES     2560	  /* 2.5 KiB */
#define SEND_BYTES     (656 + 64) /* including the inline data of each queue pair */
#define RECEIVE_BYTES  (24 + 16)
#define RESPONSE_BYTES 8192
#define IN_WORK_BYTES  536 /* the receive of the current message */
#define OVERHEAD_BYTES 16  /* of an allocation */
#define ENTRIES	       64
#define READS	       4
#define FLOOD	       20000

static struct world *world;

static enum fate lose_all(unsigned int number, void *arg)
{
	(void)number;
	(void)arg;
	return FATE_LOST;
}

static size_t heap_bytes(void)
{
	return mallinfo2().uordblks;
}

static struct fab_packet read_request(uint32_t psn)
{
	return (struct fab_packet){ .op = FAB_OP_READ, .psn = psn, .dma_bytes = 16384 };
}

/* Queued reads, then an incomplete message. */
static void begin_all(uint32_t *psn)
{
	unsigned int i;

	for (i = 0; i < READS; i++, *psn += 64)
		world_inject_packet(world, 1, read_request(*psn));
	world_inject_packet(
		world, 1,
		(struct fab_packet){
			.op = FAB_OP_SEND, .flags = FAB_FIRST, .psn = (*psn)++, .bytes = 256 });
}

/* Duplicates, unexpected PSNs, other operations and other services. */
static void flood(uint32_t psn)
{
	struct fab_packet packet;
	unsigned int i;

	for (i = 0; i < FLOOD; i++) {
		packet = (struct fab_packet){ .op = (uint8_t)(rand() % (FAB_OP_UNKNOWN + 1)),
					      .service = i % 16 ? FAB_SERVICE_RC : FAB_SERVICE_UC,
					      .flags = (uint8_t)rand(),
					      .bytes = (uint32_t)rand() % 257,
					      .dma_bytes = (uint32_t)rand() % 65536,
					      .psn = psn + (i % 2 ? 1 + i : -i) };
		world_inject_packet(world, 1, packet);
	}
}

TEST(queue_pair_uses_no_more_memory_than_documented)
{
	const struct world_config config = { .type = IBV_QPT_RC, .max_rd_atomic = READS };
	size_t before, bytes = 2 * (PAIR_BYTES + OVERHEAD_BYTES);
	struct ibv_send_wr wr = { .opcode = IBV_WR_RDMA_WRITE };
	struct fab_packet atomic = { .op = FAB_OP_FETCH_ADD };
	uint32_t psn = 0;
	unsigned int i;

	world = world_open(&config);
	world->fate_of = lose_all;
	before = heap_bytes();
	world_add_pair(world, &config);
	ck_assert_uint_le(heap_bytes() - before, bytes);
	for (i = 0; i < ENTRIES; i++)
		ck_assert_int_eq(world_post(world, 0, &wr, 0, 0, 4096), 0);
	bytes += ENTRIES * (SEND_BYTES + OVERHEAD_BYTES) + OVERHEAD_BYTES;
	ck_assert_uint_le(heap_bytes() - before, bytes);
	for (i = 0; i < ENTRIES; i++)
		world_receive(world, 1, i, 0, 4096);
	for (; psn < 200; psn++) {
		atomic.psn = psn;
		world_inject_packet(world, 1, atomic);
	}
	begin_all(&psn);
	flood(psn);
	bytes += ENTRIES * RECEIVE_BYTES + RESPONSE_BYTES + IN_WORK_BYTES + 4 * OVERHEAD_BYTES;
	ck_assert_uint_le(heap_bytes() - before, bytes);
	ck_assert_int_eq(to_qp(world->end[1].qp)->attr.qp_state, IBV_QPS_RTS);
	world_close(world);
}
