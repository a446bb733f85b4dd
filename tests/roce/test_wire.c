/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Each packet of both ends and each completion, in order, as defined in the cited clauses of IBTA
 * vol. 1; transcript.h defines the notation.
 */
#include "tests/roce/transcript.h"
#include "tests/unit/test.h"

#define BYTES 1200 /* five packets */
#define IMM   0x01020304
#define WRAPS 0xfffffe

static struct world *open_rc(void)
{
	return transcript_open(&(struct world_config){ .type = IBV_QPT_RC });
}

static void post(struct world *world, enum ibv_wr_opcode opcode, uint32_t bytes)
{
	struct ibv_send_wr wr = { .opcode = opcode, .imm_data = IMM };

	ck_assert_int_eq(world_post(world, 0, &wr, 0, 4096, bytes), 0);
}

/* --- messages ------------------------------------------------------------ */

/* 9.7.5.1.5: PSN by PSN; table 38: first, middle, last. */
TEST(write_is_sent_in_five_packets)
{
	struct world *world = open_rc();

	post(world, IBV_WR_RDMA_WRITE, BYTES);
	transcript_check(world, "> WRITE f 0 at 4096+1200 256 bytes\n"
				"> WRITE  1 256 bytes\n"
				"> WRITE  2 256 bytes\n"
				"> WRITE a 3 256 bytes\n"
				"> WRITE la 4 176 bytes\n"
				"< ACK  3 msn 0\n"
				"< ACK  4 msn 1\n"
				"done 0\n");
	world_close(world);
}

TEST(send_is_sent_in_five_packets)
{
	struct world *world = open_rc();

	world_receive(world, 1, 1, 0, BYTES);
	post(world, IBV_WR_SEND, BYTES);
	transcript_check(world, "> SEND f 0 256 bytes\n"
				"> SEND  1 256 bytes\n"
				"> SEND  2 256 bytes\n"
				"> SEND a 3 256 bytes\n"
				"> SEND la 4 176 bytes\n"
				"< ACK  3 msn 0\n"
				"< ACK  4 msn 1\n"
				"done 0\n"
				"done 1 received 1200\n");
	world_close(world);
}

TEST(immediate_data_is_in_the_last_packet)
{
	struct world *world = open_rc();
	struct ibv_send_wr wr = { .opcode = IBV_WR_SEND_WITH_IMM,
				  .imm_data = IMM,
				  .send_flags = IBV_SEND_SOLICITED };

	world_receive(world, 1, 1, 0, BYTES);
	world_receive(world, 1, 2, 0, BYTES);
	ck_assert_int_eq(world_post(world, 0, &wr, 0, 0, 300), 0);
	post(world, IBV_WR_RDMA_WRITE_WITH_IMM, 257);
	transcript_check(world, "> SEND f 0 256 bytes\n"
				"> SEND lasi 1 44 bytes imm 1020304\n"
				"> WRITE f 2 at 4096+257 256 bytes\n"
				"> WRITE lai 3 1 bytes imm 1020304\n"
				"< ACK  1 msn 1\n"
				"< ACK  3 msn 2\n"
				"done 0\n"
				"done 0\n"
				"done 1 received 300 imm 1020304\n"
				"done 1 received 257 imm 1020304\n");
	world_close(world);
}

/* 9.7.2: one packet each, with a PSN of its own. */
TEST(empty_messages_are_one_packet)
{
	struct world *world = open_rc();

	world_receive(world, 1, 1, 0, 0);
	post(world, IBV_WR_SEND, 0);
	post(world, IBV_WR_RDMA_WRITE, 0);
	post(world, IBV_WR_RDMA_READ, 0);
	transcript_check(world, "> SEND fla 0\n"
				"> WRITE fla 1 at 4096+0\n"
				"> READ  2 at 4096+0\n"
				"< ACK  0 msn 1\n"
				"< ACK  1 msn 2\n"
				"< RESPONSE fl 2 msn 3\n"
				"done 0\n"
				"done 0\n"
				"done 0\n"
				"done 1 received 0\n");
	world_close(world);
}

/* 9.7.3.2: a read uses as many PSNs as it has responses, numbered from its own. */
TEST(read_has_five_responses)
{
	struct world *world = open_rc();

	post(world, IBV_WR_RDMA_READ, BYTES);
	post(world, IBV_WR_RDMA_WRITE, 8);
	transcript_check(world, "> READ  0 at 4096+1024\n"
				"> READ  4 at 5120+176\n"
				"> WRITE fla 5 at 4096+8 8 bytes\n"
				"< RESPONSE f 0 256 bytes msn 1\n"
				"< RESPONSE l 3 256 bytes msn 1\n"
				"< RESPONSE fl 4 176 bytes msn 2\n"
				"< ACK  5 msn 3\n"
				"done 0\n"
				"done 0\n");
	world_close(world);
}

TEST(read_of_full_packets_has_no_short_response)
{
	struct world *world = open_rc();

	post(world, IBV_WR_RDMA_READ, 512);
	transcript_check(world, "> READ  0 at 4096+512\n"
				"< RESPONSE f 0 256 bytes msn 1\n"
				"< RESPONSE l 1 256 bytes msn 1\n"
				"done 0\n");
	world_close(world);
}

/* 9.4.5 */
TEST(atomics_have_one_response)
{
	struct world *world = open_rc();
	struct ibv_send_wr swap = { .opcode = IBV_WR_ATOMIC_CMP_AND_SWP },
			   add = { .opcode = IBV_WR_ATOMIC_FETCH_AND_ADD };
	uint64_t *value = (uint64_t *)(world->end[1].memory + 4096);

	*value = 7;
	swap.wr.atomic.compare_add = 7;
	swap.wr.atomic.swap = 9;
	add.wr.atomic.compare_add = 3;
	ck_assert_int_eq(world_post(world, 0, &swap, 0, 4096, 8), 0);
	ck_assert_int_eq(world_post(world, 0, &add, 8, 4096, 8), 0);
	ck_assert_int_eq(world_post(world, 0, &swap, 16, 4096, 8), 0);
	transcript_check(world, "> COMPARE_SWAP  0 at 4096 7 9\n"
				"> FETCH_ADD  1 at 4096 3 0\n"
				"> COMPARE_SWAP  2 at 4096 7 9\n"
				"< ATOMIC_RESPONSE  0 was 7 msn 1\n"
				"< ATOMIC_RESPONSE  1 was 9 msn 2\n"
				"< ATOMIC_RESPONSE  2 was 12 msn 3\n"
				"done 0\n"
				"done 0\n"
				"done 0\n");
	ck_assert_uint_eq(*value, 12);
	world_close(world);
}

/* 9.7.1: PSNs have 24 bits. */
TEST(psns_wrap_after_24_bits)
{
	struct world *world =
		transcript_open(&(struct world_config){ .type = IBV_QPT_RC, .psn = WRAPS });

	post(world, IBV_WR_RDMA_WRITE, BYTES);
	post(world, IBV_WR_RDMA_READ, 512);
	transcript_check(world, "> WRITE f 16777214 at 4096+1200 256 bytes\n"
				"> WRITE  16777215 256 bytes\n"
				"> WRITE  0 256 bytes\n"
				"> WRITE a 1 256 bytes\n"
				"> WRITE la 2 176 bytes\n"
				"> READ  3 at 4096+512\n"
				"< ACK  1 msn 0\n"
				"< ACK  2 msn 1\n"
				"< RESPONSE f 3 256 bytes msn 2\n"
				"< RESPONSE l 4 256 bytes msn 2\n"
				"done 0\n"
				"done 0\n");
	world_close(world);
}

/* A window has at most 16 packets, and at most 1024 bytes. */
TEST(ack_is_requested_within_a_window)
{
	struct world *world = open_rc();

	post(world, IBV_WR_RDMA_WRITE, 4608);
	transcript_check(world, "> WRITE f 0 at 4096+4608 256 bytes\n"
				"> WRITE  1 256 bytes\n"
				"> WRITE  2 256 bytes\n"
				"> WRITE a 3 256 bytes\n"
				"> WRITE  4 256 bytes\n"
				"> WRITE  5 256 bytes\n"
				"> WRITE  6 256 bytes\n"
				"> WRITE a 7 256 bytes\n"
				"> WRITE  8 256 bytes\n"
				"> WRITE  9 256 bytes\n"
				"> WRITE  10 256 bytes\n"
				"> WRITE a 11 256 bytes\n"
				"> WRITE  12 256 bytes\n"
				"> WRITE  13 256 bytes\n"
				"> WRITE  14 256 bytes\n"
				"> WRITE a 15 256 bytes\n"
				"< ACK  3 msn 0\n"
				"< ACK  7 msn 0\n"
				"< ACK  11 msn 0\n"
				"< ACK  15 msn 0\n"
				"> WRITE  16 256 bytes\n"
				"> WRITE la 17 256 bytes\n"
				"< ACK  17 msn 1\n"
				"done 0\n");
	world_close(world);
}

/* 9.8: there are no acknowledgements, and a message with a missing packet is dropped. */
TEST(unreliable_messages_are_not_acknowledged)
{
	struct world *world = transcript_open(&(struct world_config){ .type = IBV_QPT_UC });
	unsigned int i;

	transcript_lost = 4;
	for (i = 0; i < 4; i++)
		world_receive(world, 1, i, 0, BYTES);
	post(world, IBV_WR_SEND, 600);
	post(world, IBV_WR_SEND, 600);
	post(world, IBV_WR_RDMA_WRITE_WITH_IMM, 300);
	post(world, IBV_WR_SEND, 20);
	transcript_check(world, "> SEND f 0 256 bytes\n"
				"> SEND  1 256 bytes\n"
				"> SEND la 2 88 bytes\n"
				"> SEND f 3 256 bytes\n"
				"> SEND  4 256 bytes\n"
				"> SEND la 5 88 bytes\n"
				"> WRITE f 6 at 4096+300 256 bytes\n"
				"> WRITE lai 7 44 bytes imm 1020304\n"
				"> SEND fla 8 20 bytes\n"
				"done 0\n"
				"done 0\n"
				"done 0\n"
				"done 0\n"
				"done 1 received 600\n"
				"done 1 received 300 imm 1020304\n"
				"done 1 received 20\n");
	world_close(world);
}

/* --- losses --------------------------------------------------------------- */

/* 9.7.5.1.1: one NAK per gap; 9.7.5.2.4: the requester retransmits from there. */
TEST(lost_packet_is_retransmitted)
{
	struct world *world = open_rc();

	transcript_lost = 1;
	post(world, IBV_WR_RDMA_WRITE, BYTES);
	transcript_check(world, "> WRITE f 0 at 4096+1200 256 bytes\n"
				"> WRITE  1 256 bytes\n"
				"> WRITE  2 256 bytes\n"
				"> WRITE a 3 256 bytes\n"
				"> WRITE la 4 176 bytes\n"
				"< NAK  1 why 0 msn 0\n"
				"> WRITE  1 256 bytes\n"
				"> WRITE  2 256 bytes\n"
				"> WRITE a 3 256 bytes\n"
				"> WRITE la 4 176 bytes\n"
				"< ACK  3 msn 0\n"
				"< ACK  4 msn 1\n"
				"done 0\n");
	world_close(world);
}

/* 9.7.5.1.3: a duplicate is acknowledged, with the PSN of the last accepted packet. */
TEST(lost_ack_is_repeated)
{
	struct world *world = open_rc();

	transcript_lost = 2;
	post(world, IBV_WR_RDMA_WRITE, 300);
	transcript_check(world, "> WRITE f 0 at 4096+300 256 bytes\n"
				"> WRITE la 1 44 bytes\n"
				"< ACK  1 msn 1\n"
				"> WRITE fa 0 at 4096+300 256 bytes\n"
				"> WRITE la 1 44 bytes\n"
				"< ACK  1 msn 1\n"
				"< ACK  1 msn 1\n"
				"done 0\n");
	world_close(world);
}

/* 9.7.3.2: it requests the rest, by the PSN of the first missing response. */
TEST(lost_response_is_requested_again)
{
	struct world *world = open_rc();

	transcript_lost = 2;
	post(world, IBV_WR_RDMA_READ, BYTES);
	transcript_check(world, "> READ  0 at 4096+1024\n"
				"> READ  4 at 5120+176\n"
				"< RESPONSE f 0 256 bytes msn 1\n"
				"< RESPONSE l 3 256 bytes msn 1\n"
				"< RESPONSE fl 4 176 bytes msn 2\n"
				"> READ  0 at 4096+1024\n"
				"> READ  4 at 5120+176\n"
				"< RESPONSE f 0 256 bytes msn 2\n"
				"< RESPONSE l 3 256 bytes msn 2\n"
				"< RESPONSE fl 4 176 bytes msn 2\n"
				"done 0\n");
	world_close(world);
}

TEST(lost_last_response_is_requested_again)
{
	struct world *world = open_rc();

	transcript_lost = 3;
	post(world, IBV_WR_RDMA_READ, 600);
	transcript_check(world, "> READ  0 at 4096+600\n"
				"< RESPONSE f 0 256 bytes msn 1\n"
				"< RESPONSE l 2 88 bytes msn 1\n"
				"> READ  2 at 4608+88\n"
				"< RESPONSE fl 2 88 bytes msn 1\n"
				"done 0\n");
	world_close(world);
}

/* 9.7.5.1.2: the repetition has the stored result. */
TEST(lost_answer_to_an_atomic_is_repeated)
{
	struct world *world = open_rc();
	struct ibv_send_wr add = { .opcode = IBV_WR_ATOMIC_FETCH_AND_ADD };

	transcript_lost = 1;
	add.wr.atomic.compare_add = 3;
	ck_assert_int_eq(world_post(world, 0, &add, 8, 4096, 8), 0);
	transcript_check(world, "> FETCH_ADD  0 at 4096 3 0\n"
				"< ATOMIC_RESPONSE  0 was 0 msn 1\n"
				"> FETCH_ADD  0 at 4096 3 0\n"
				"< ATOMIC_RESPONSE  0 was 0 msn 1\n"
				"done 0\n");
	ck_assert_uint_eq(*(uint64_t *)(world->end[1].memory + 4096), 3);
	world_close(world);
}

/* 9.7.5.2.8: later packets are dropped until the request is retransmitted. */
TEST(requester_retries_after_an_rnr_nak)
{
	struct world *world = open_rc();

	post(world, IBV_WR_SEND, 300);
	world_run_for(world, 15000);
	world_receive(world, 1, 1, 0, BYTES);
	transcript_check(world, "> SEND f 0 256 bytes\n"
				"> SEND la 1 44 bytes\n"
				"< NAK  0 why 4 msn 0\n"
				"> SEND f 0 256 bytes\n"
				"> SEND la 1 44 bytes\n"
				"< ACK  1 msn 1\n"
				"done 0\n"
				"done 1 received 300\n");
	world_close(world);
}

TEST(requester_gives_up_after_rnr_retries)
{
	struct world *world =
		transcript_open(&(struct world_config){ .type = IBV_QPT_RC, .rnr_retry = 2 });

	post(world, IBV_WR_SEND, 8);
	post(world, IBV_WR_RDMA_WRITE, 8);
	transcript_check(world, "> SEND fla 0 8 bytes\n"
				"> WRITE fla 1 at 4096+8 8 bytes\n"
				"< NAK  0 why 4 msn 0\n"
				"> SEND fla 0 8 bytes\n"
				"> WRITE fla 1 at 4096+8 8 bytes\n"
				"< NAK  0 why 4 msn 0\n"
				"> SEND fla 0 8 bytes\n"
				"> WRITE fla 1 at 4096+8 8 bytes\n"
				"< NAK  0 why 4 msn 0\n"
				"done 0 status 13\n"
				"done 0 status 5\n");
	world_close(world);
}
