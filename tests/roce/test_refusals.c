/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Requests that a responder refuses, with which NAK (IBTA vol. 1, 9.7.4.1 and table 45) and event,
 * without further packets or stores.
 */
#include <stdio.h>
#include <string.h>

#include "tests/roce/transcript.h"
#include "tests/unit/test.h"

#define KEY	   0x12345 /* an unknown key */
#define AT	   64
#define READ_BYTES 16384 /* sent in 16 turns */
#define ONLY	   (FAB_FIRST | FAB_LAST | FAB_ASK_ACK)
#define ACCESS	   "event 1: local access violation work queue error\n"
#define REQUEST	   "event 1: invalid request local work queue error\n"

enum why {
	INVALID = FAB_NAK_INVALID_REQUEST,
	DENIED = FAB_NAK_REMOTE_ACCESS
};

static const struct refusal {
	struct fab_packet packet;
	int not_allowed; /* access flags that the queue pair lacks */
	enum why why;
} refusals[] = {
	/* 9.7.4.1.2: order */
	{ { .op = FAB_OP_SEND, .flags = FAB_LAST, .bytes = 8 }, 0, INVALID },
	{ { .op = FAB_OP_WRITE, .flags = 0, .bytes = 256 }, 0, INVALID },
	/* 9.7.4.1.3: what the queue pair does not allow */
	{ { .op = FAB_OP_WRITE, .flags = ONLY, .dma_bytes = 8, .bytes = 8 },
	  IBV_ACCESS_REMOTE_WRITE,
	  INVALID },
	{ { .op = FAB_OP_WRITE, .flags = ONLY }, IBV_ACCESS_REMOTE_WRITE, INVALID },
	{ { .op = FAB_OP_READ, .dma_bytes = 8 }, IBV_ACCESS_REMOTE_READ, INVALID },
	{ { .op = FAB_OP_FETCH_ADD, .compare_add = 1 }, IBV_ACCESS_REMOTE_ATOMIC, INVALID },
	{ { .op = FAB_OP_ATOMIC_WRITE, .flags = ONLY, .dma_bytes = 8, .bytes = 8 },
	  IBV_ACCESS_REMOTE_WRITE,
	  INVALID },
	{ { .op = FAB_OP_FLUSH, .flush = FAB_FLUSH_GLOBAL }, 0, INVALID },
	/* 9.7.4.1.5: keys */
	{ { .op = FAB_OP_WRITE, .flags = ONLY, .rkey = KEY, .dma_bytes = 8, .bytes = 8 },
	  0,
	  DENIED },
	{ { .op = FAB_OP_READ, .rkey = KEY, .dma_bytes = 8 }, 0, DENIED },
	{ { .op = FAB_OP_FETCH_ADD, .rkey = KEY, .compare_add = 1 }, 0, DENIED },
	{ { .op = FAB_OP_ATOMIC_WRITE, .flags = ONLY, .rkey = KEY, .dma_bytes = 8, .bytes = 8 },
	  0,
	  DENIED },
	{ { .op = FAB_OP_FLUSH, .flush = 0, .dma_bytes = 8 }, 0, INVALID },
	{ { .op = FAB_OP_FLUSH, .flush = FAB_FLUSH_GLOBAL | 4, .dma_bytes = 8 }, 0, INVALID },
	{ { .op = FAB_OP_FLUSH, .flush = FAB_FLUSH_GLOBAL | 2 * FAB_FLUSH_REGION }, 0, INVALID },
	/* 9.7.4.1.6: lengths; 2^31 is the longest message */
	{ { .op = FAB_OP_WRITE, .flags = FAB_FIRST, .dma_bytes = FAB_MSG_MAX + 1, .bytes = 256 },
	  0,
	  INVALID },
	{ { .op = FAB_OP_WRITE, .flags = FAB_FIRST, .dma_bytes = FAB_MSG_MAX, .bytes = 256 },
	  0,
	  DENIED },
	{ { .op = FAB_OP_WRITE, .flags = FAB_FIRST, .dma_bytes = 256, .bytes = 256 }, 0, INVALID },
	{ { .op = FAB_OP_READ, .dma_bytes = FAB_MSG_MAX + 1 }, 0, INVALID },
	{ { .op = FAB_OP_READ, .dma_bytes = FAB_MSG_MAX }, 0, DENIED },
	{ { .op = FAB_OP_ATOMIC_WRITE, .flags = ONLY, .dma_bytes = 8, .bytes = 12 }, 0, INVALID },
	{ { .op = FAB_OP_ATOMIC_WRITE, .flags = ONLY, .dma_bytes = 12, .bytes = 8 }, 0, INVALID },
	/* 9.7.4.1.7: alignment */
	{ { .op = FAB_OP_FETCH_ADD, .remote_addr = 4, .compare_add = 1 }, 0, INVALID },
	{ { .op = FAB_OP_ATOMIC_WRITE,
	    .flags = ONLY,
	    .remote_addr = 4,
	    .dma_bytes = 8,
	    .bytes = 8 },
	  0,
	  INVALID },
};

static struct world *open_filled(uint8_t max_rd_atomic)
{
	struct world *world = transcript_open(
		&(struct world_config){ .type = IBV_QPT_RC, .max_rd_atomic = max_rd_atomic });

	memset(world->end[1].memory, 1, WORLD_BYTES);
	return world;
}

static void check_memory(const struct world *world)
{
	unsigned int i;

	for (i = 0; i < WORLD_BYTES; i++)
		ck_assert_uint_eq(world->end[1].memory[i], 1);
}

static void inject_write(struct world *world, uint32_t psn)
{
	world_inject_packet(world, 1,
			    (struct fab_packet){ .op = FAB_OP_WRITE,
						 .flags = ONLY,
						 .psn = psn,
						 .remote_addr = AT,
						 .dma_bytes = 4,
						 .bytes = 4 });
}

TEST_LOOP(bad_request_is_refused_at_once, 0, sizeof(refusals) / sizeof(refusals[0]))
{
	const struct refusal *refusal = &refusals[_i];
	struct fab_packet packet = refusal->packet;
	struct world *world = open_filled(0);
	char wanted[128];

	to_qp(world->end[1].qp)->attr.qp_access_flags &= ~(unsigned int)refusal->not_allowed;
	packet.remote_addr += AT;
	world_inject_packet(world, 1, packet);
	inject_write(world, 0);
	inject_write(world, 1);
	snprintf(wanted, sizeof(wanted), "< NAK  0 why %d msn 0\n%s", refusal->why,
		 refusal->why == DENIED ? ACCESS : REQUEST);
	transcript_check(world, wanted);
	check_memory(world);
	world_close(world);
}

/* The peer gets the NAK after the pending responses, while nothing else is accepted. */
TEST_LOOP(nak_follows_earlier_responses, 0, sizeof(refusals) / sizeof(refusals[0]))
{
	const struct refusal *refusal = &refusals[_i];
	struct fab_packet packet = refusal->packet;
	struct world *world = open_filled(0);
	enum why why = refusal->why;
	char wanted[256];

	world_inject_packet(world, 1,
			    (struct fab_packet){ .op = FAB_OP_READ, .dma_bytes = READ_BYTES });
	to_qp(world->end[1].qp)->attr.qp_access_flags &=
		~(unsigned int)(refusal->not_allowed & ~IBV_ACCESS_REMOTE_READ);
	if (refusal->not_allowed & IBV_ACCESS_REMOTE_READ) { /* which the first read needs */
		packet.rkey = KEY;
		why = DENIED;
	}
	packet.psn = READ_BYTES / 256;
	packet.remote_addr += AT;
	world_inject_packet(world, 1, packet);
	inject_write(world, packet.psn);
	inject_write(world, packet.psn + 1);
	snprintf(wanted, sizeof(wanted),
		 "< RESPONSE f 0 256 bytes msn 1\n< RESPONSE l 63 256 bytes msn 1\n"
		 "< NAK  64 why %d msn 1\n%s",
		 why, why == DENIED ? ACCESS : REQUEST);
	transcript_check(world, wanted);
	check_memory(world);
	world_close(world);
}

/* 9.7.4.1.2: at most max_dest_rd_atomic; further requests are not executed. */
TEST_LOOP(excess_read_is_refused, 0, 3)
{
	static const uint8_t ops[] = { FAB_OP_ATOMIC_WRITE, FAB_OP_FETCH_ADD, FAB_OP_FLUSH };
	struct fab_packet packet = { .op = ops[_i],
				     .flags = ONLY,
				     .flush = FAB_FLUSH_GLOBAL,
				     .psn = READ_BYTES / 256,
				     .remote_addr = AT };
	struct world *world = open_filled(1);

	packet.compare_add = 1;
	if (!_i)
		packet.dma_bytes = packet.bytes = 8;
	world_inject_packet(world, 1,
			    (struct fab_packet){ .op = FAB_OP_READ, .dma_bytes = READ_BYTES });
	world_inject_packet(world, 1, packet);
	transcript_check(world, "< RESPONSE f 0 256 bytes msn 1\n"
				"< RESPONSE l 63 256 bytes msn 1\n"
				"< NAK  64 why 1 msn 1\n" REQUEST);
	check_memory(world);
	world_close(world);
}

/* 9.7.5.2.6: a message that is too long is the requester's error, a bad receive is not. */
TEST_LOOP(too_short_receive_fails_both_ends, 0, 2)
{
	struct world *world = open_filled(0);
	struct ibv_sge sge = { AT, _i ? 8 : 4, world->end[1].mr->lkey + (_i ? 1 : 0) };
	struct ibv_recv_wr wr = { .sg_list = &sge, .num_sge = 1 }, *bad;

	ck_assert_int_eq(ibv_post_recv(world->end[1].qp, &wr, &bad), 0);
	world_receive(world, 1, 2, 0, 8);
	world_inject_packet(world, 1,
			    (struct fab_packet){ .op = FAB_OP_SEND, .flags = ONLY, .bytes = 8 });
	inject_write(world, 0);
	transcript_check(world, _i ? "< NAK  0 why 3 msn 0\ndone 1 status 4\ndone 1 status 5\n"
				   : "< NAK  0 why 1 msn 0\ndone 1 status 1\ndone 1 status 5\n");
	world_close(world);
}

/* With the PSN of the missing response, or the requester would take the response for lost. */
TEST(response_from_deregistered_memory_is_refused)
{
	struct world *world = open_filled(0);

	world_inject_packet(world, 1,
			    (struct fab_packet){ .op = FAB_OP_READ, .dma_bytes = READ_BYTES });
	ck_assert_int_eq(ibv_dereg_mr(world->end[1].mr), 0);
	transcript_check(world, "< RESPONSE f 0 256 bytes msn 1\n"
				"< NAK  8 why 2 msn 1\n" ACCESS);
	world->end[1].mr = ibv_reg_mr_iova2(world->end[1].pd, world->end[1].memory, WORLD_BYTES, 0,
					    WORLD_ACCESS);
	world_close(world);
}

/* 9.7.5.1.2: all PSNs of a duplicate precede the expected one. */
TEST(duplicate_beyond_the_expected_psn_is_refused)
{
	struct fab_packet read = { .op = FAB_OP_READ, .dma_bytes = 300 };
	struct world *world = open_filled(0);

	world_inject_packet(world, 1, read);
	transcript_check(world, "< RESPONSE f 0 256 bytes msn 1\n< RESPONSE l 1 44 bytes msn 1\n");
	read.dma_bytes = 513;
	world_inject_packet(world, 1, read);
	read.dma_bytes = FAB_MSG_MAX + 1;
	world_inject_packet(world, 1, read);
	transcript_check(world, "");
	read.dma_bytes = 512;
	world_inject_packet(world, 1, read);
	transcript_check(world, "< RESPONSE f 0 256 bytes msn 1\n< RESPONSE l 1 256 bytes msn 1\n");
	world_close(world);
}

/* 9.4.5: 128 results are kept. */
TEST(results_of_atomics_are_kept)
{
	struct fab_packet add = { .op = FAB_OP_FETCH_ADD, .remote_addr = AT, .compare_add = 1 };
	struct world *world = open_filled(0);

	*(uint64_t *)(world->end[1].memory + AT) = 0;
	for (add.psn = 0; add.psn <= FAB_RD_MAX; add.psn++)
		world_inject_packet(world, 1, add);
	world_run(world);
	transcript_forget();
	add.psn = 0;
	world_inject_packet(world, 1, add);
	add.psn = 1;
	world_inject_packet(world, 1, add);
	transcript_check(world, "< ATOMIC_RESPONSE  1 was 1 msn 129\n");
	ck_assert_uint_eq(*(uint64_t *)(world->end[1].memory + AT), FAB_RD_MAX + 1);
	world_close(world);
}

/* Annex A19; it is sent once, also if it is requested again before. */
TEST(atomic_write_is_a_message)
{
	struct fab_packet packet = { .op = FAB_OP_ATOMIC_WRITE,
				     .flags = ONLY,
				     .psn = READ_BYTES / 256,
				     .remote_addr = AT,
				     .dma_bytes = 8,
				     .bytes = 8 };
	struct world *world = open_filled(0);

	world_inject_packet(world, 1,
			    (struct fab_packet){ .op = FAB_OP_READ, .dma_bytes = READ_BYTES });
	world_inject_packet(world, 1, packet);
	world_inject_packet(world, 1, packet);
	inject_write(world, packet.psn + 1);
	transcript_check(world, "< RESPONSE f 0 256 bytes msn 1\n"
				"< RESPONSE l 63 256 bytes msn 1\n"
				"< RESPONSE fl 64 msn 2\n"
				"< ACK  65 msn 3\n");
	world_close(world);
}

static void allow_flush(struct world *world, unsigned int of_pair, unsigned int of_region)
{
	to_qp(world->end[1].qp)->attr.qp_access_flags |= of_pair;
	container_of(world->end[1].mr, struct fab_mr, ibv)->access |= of_region;
}

/* Annex A19; a duplicate is answered again. */
TEST(flush_is_a_message)
{
	struct fab_packet packet = { .op = FAB_OP_FLUSH,
				     .flush = FAB_FLUSH_GLOBAL,
				     .remote_addr = AT,
				     .dma_bytes = WORLD_BYTES - AT };
	struct world *world = open_filled(0);

	allow_flush(world, FAB_ACCESS_FLUSH_GLOBAL, FAB_ACCESS_FLUSH_GLOBAL);
	world_inject_packet(world, 1, packet);
	world_inject_packet(world, 1, packet);
	inject_write(world, 1);
	packet.psn = 2;
	packet.remote_addr = WORLD_BYTES; /* beyond any valid range */
	packet.flush |= FAB_FLUSH_REGION;
	world_inject_packet(world, 1, packet);
	transcript_check(world, "< RESPONSE fl 0 msn 1\n"
				"< RESPONSE fl 0 msn 1\n"
				"< ACK  1 msn 2\n"
				"< RESPONSE fl 2 msn 3\n");
	world_close(world);
}

static const struct {
	unsigned int of_region;
	uint8_t flush;
	uint32_t bytes;
} not_flushed[] = {
	{ 0, FAB_FLUSH_GLOBAL, 8 },
	{ 0, FAB_FLUSH_GLOBAL | FAB_FLUSH_REGION, 0 },
	{ FAB_ACCESS_FLUSH_GLOBAL, FAB_FLUSH_GLOBAL, WORLD_BYTES },
	{ FAB_ACCESS_FLUSH_GLOBAL, FAB_FLUSH_PERSISTENT, 8 },
	{ FAB_ACCESS_FLUSH_GLOBAL, FAB_FLUSH_GLOBAL | FAB_FLUSH_PERSISTENT, 8 },
};

TEST_LOOP(flush_needs_its_access, 0, sizeof(not_flushed) / sizeof(not_flushed[0]))
{
	struct world *world = open_filled(0);

	allow_flush(world, FAB_ACCESS_FLUSH_GLOBAL | FAB_ACCESS_FLUSH_PERSISTENT,
		    not_flushed[_i].of_region);
	world_inject_packet(world, 1,
			    (struct fab_packet){ .op = FAB_OP_FLUSH,
						 .flush = not_flushed[_i].flush,
						 .remote_addr = AT,
						 .dma_bytes = not_flushed[_i].bytes });
	transcript_check(world, "< NAK  0 why 2 msn 0\n" ACCESS);
	world_close(world);
}

/* 9.8.2.2: on unreliable queue pairs, a packet of another message ends the current one. */
TEST(another_message_ends_an_unreliable_one)
{
	struct world *world = transcript_open(&(struct world_config){ .type = IBV_QPT_UC });
	struct fab_packet packet = {
		.service = FAB_SERVICE_UC, .op = FAB_OP_SEND, .flags = FAB_FIRST, .bytes = 256
	};

	world_receive(world, 1, 1, 0, 4096);
	world_inject_packet(world, 1, packet);
	packet.op = FAB_OP_WRITE;
	packet.flags = 0;
	packet.psn = 1;
	world_inject_packet(world, 1, packet);
	packet.op = FAB_OP_SEND;
	packet.flags = FAB_LAST;
	packet.psn = 2;
	world_inject_packet(world, 1, packet);
	transcript_check(world, "");
	packet.flags = FAB_FIRST | FAB_LAST;
	packet.psn = 3;
	world_inject_packet(world, 1, packet);
	transcript_check(world, "done 1 received 256\n");
	world_close(world);
}

/* 9.8.2.2.3: a refused packet is dropped, with the rest of its message. */
TEST(bad_unreliable_message_is_dropped)
{
	struct world *world = transcript_open(&(struct world_config){ .type = IBV_QPT_UC });
	struct fab_packet packet = { .service = FAB_SERVICE_UC,
				     .op = FAB_OP_WRITE,
				     .flags = FAB_FIRST,
				     .rkey = KEY,
				     .dma_bytes = 512,
				     .bytes = 256 };

	world_receive(world, 1, 1, 0, 4096);
	world_inject_packet(world, 1, packet);
	packet.flags = FAB_LAST | FAB_IMM;
	packet.psn = 1;
	world_inject_packet(world, 1, packet);
	packet = (struct fab_packet){ .service = FAB_SERVICE_UC,
				      .op = FAB_OP_SEND,
				      .flags = FAB_FIRST | FAB_LAST,
				      .psn = 2,
				      .bytes = 20 };
	world_inject_packet(world, 1, packet);
	transcript_check(world, "done 1 received 20\n");
	world_close(world);
}

/* 10.3.1.5 */
TEST(first_request_establishes_a_connection_once)
{
	struct world *world = open_filled(0);

	inject_write(world, 0);
	transcript_check(world, "< ACK  0 msn 1\n");
	to_qp(world->end[1].qp)->attr.qp_state = IBV_QPS_RTR;
	inject_write(world, 1);
	inject_write(world, 2);
	transcript_check(world, "< ACK  1 msn 2\n< ACK  2 msn 3\n"
				"event 1: communication established\n");
	to_qp(world->end[1].qp)->attr.qp_state = IBV_QPS_RTS;
	world_close(world);
}
