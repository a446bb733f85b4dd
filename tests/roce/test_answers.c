/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Requests to a responder, and responses to a requester, as only a foreign peer sends them: each
 * packet and completion, as defined in the cited clauses of IBTA vol. 1.
 */
#include <stdio.h>
#include <string.h>

#include "tests/roce/transcript.h"
#include "tests/unit/test.h"

#define READ_BYTES 16384 /* sent in 16 turns */

static struct world *open_rc(void)
{
	return transcript_open(&(struct world_config){ .type = IBV_QPT_RC });
}

static void post(struct world *world, enum ibv_wr_opcode opcode, uint32_t bytes)
{
	struct ibv_send_wr wr = { .opcode = opcode };

	ck_assert_int_eq(world_post(world, 0, &wr, 0, 4096, bytes), 0);
}

static void ask_to_read(struct world *world, uint32_t psn, uint32_t bytes)
{
	world_inject_packet(
		world, 1,
		(struct fab_packet){
			.op = FAB_OP_READ, .psn = psn, .remote_addr = 512, .dma_bytes = bytes });
}

static void inject_atomic(struct world *world, uint32_t psn, uint64_t add)
{
	world_inject_packet(
		world, 1,
		(struct fab_packet){
			.op = FAB_OP_FETCH_ADD, .psn = psn, .remote_addr = 8, .compare_add = add });
}

static void inject_write(struct world *world, uint32_t psn, uint8_t flags)
{
	world_inject_packet(world, 1,
			    (struct fab_packet){ .op = FAB_OP_WRITE,
						 .flags = flags | FAB_FIRST | FAB_LAST,
						 .psn = psn,
						 .remote_addr = 64,
						 .dma_bytes = 4,
						 .bytes = 4 });
}

/* --- a responder ---------------------------------------------------------- */

/* 9.7.5.1.2: in the order of the requests, whatever turn they are sent in. */
TEST(responses_to_many_requests_come_in_order)
{
	struct world *world = open_rc();
	uint32_t psn = 0, msn = 0;
	char wanted[512];

	for (; psn < 2000; psn += 20) {
		ask_to_read(world, psn, 4096);
		inject_atomic(world, psn + 16, 1);
		ask_to_read(world, psn + 17, 300);
		inject_write(world, psn + 19, FAB_ASK_ACK);
		snprintf(wanted, sizeof(wanted),
			 "< RESPONSE f %u 256 bytes msn %u\n< RESPONSE l %u 256 bytes msn %u\n"
			 "< ATOMIC_RESPONSE  %u was %u msn %u\n"
			 "< RESPONSE f %u 256 bytes msn %u\n< RESPONSE l %u 44 bytes msn %u\n"
			 "< ACK  %u msn %u\n",
			 psn, msn + 1, psn + 15, msn + 1, psn + 16, psn / 20, msn + 2, psn + 17,
			 msn + 3, psn + 18, msn + 3, psn + 19, msn + 4);
		transcript_check(world, wanted);
		msn += 4;
	}
	world_close(world);
}

TEST(nak_of_a_gap_follows_the_responses_to_earlier_reads)
{
	struct world *world = open_rc();

	ask_to_read(world, 0, 1536);
	inject_write(world, 7, 0);
	inject_write(world, 8, 0);
	transcript_check(world, "< RESPONSE f 0 256 bytes msn 1\n"
				"< RESPONSE l 5 256 bytes msn 1\n"
				"< NAK  6 why 0 msn 1\n");
	inject_write(world, 6, FAB_ASK_ACK);
	inject_write(world, 8, 0);
	transcript_check(world, "< ACK  6 msn 2\n"
				"< NAK  7 why 0 msn 2\n");
	world_close(world);
}

TEST(duplicate_requests_are_answered_again)
{
	struct world *world = open_rc();

	inject_write(world, 0, FAB_ASK_ACK);
	inject_atomic(world, 1, 5);
	ask_to_read(world, 2, 300);
	inject_atomic(world, 4, 6);
	transcript_check(world, "< ACK  0 msn 1\n"
				"< ATOMIC_RESPONSE  1 was 0 msn 2\n"
				"< RESPONSE f 2 256 bytes msn 3\n"
				"< RESPONSE l 3 44 bytes msn 3\n"
				"< ATOMIC_RESPONSE  4 was 5 msn 4\n");
	inject_write(world, 0, 0);
	inject_atomic(world, 1, 5);
	ask_to_read(world, 2, 300);
	ask_to_read(world, 3, 44);
	inject_atomic(world, 4, 6);
	inject_atomic(world, 3, 6); /* the response to an unknown request */
	transcript_check(world, "< ACK  4 msn 4\n"
				"< ATOMIC_RESPONSE  1 was 0 msn 4\n"
				"< RESPONSE f 2 256 bytes msn 4\n"
				"< RESPONSE l 3 44 bytes msn 4\n"
				"< RESPONSE fl 3 44 bytes msn 4\n"
				"< ATOMIC_RESPONSE  4 was 5 msn 4\n");
	world_close(world);
}

/*
 * The peer may have one read outstanding. It repeats a read, receives the first response, and sends
 * the next read while the second response is still queued.
 */
TEST(next_request_ends_a_repeated_response)
{
	struct world *world =
		world_open(&(struct world_config){ .type = IBV_QPT_RC, .max_rd_atomic = 1 });
	struct fab_qp *qp = to_qp(world->end[1].qp);

	ask_to_read(world, 0, READ_BYTES);
	world_run(world);
	ask_to_read(world, 0, READ_BYTES);
	ask_to_read(world, 64, 8);
	ck_assert_uint_eq(qp->responder.psn, 65);
	ask_to_read(world, 0, READ_BYTES);
	inject_atomic(world, 65, 5);
	ck_assert_uint_eq(qp->responder.psn, 66);
	ask_to_read(world, 66, READ_BYTES);
	ask_to_read(world, 130, READ_BYTES); /* two at once: 9.7.4.1.4 */
	ck_assert_uint_eq(qp->responder.psn, 130);
	world_run(world);
	ck_assert_int_eq(qp->attr.qp_state, IBV_QPS_ERR);
	world_close(world);
}

/* A part of a long read that is not yet sent is requested again: it is sent once. */
TEST(duplicates_of_queued_reads_add_no_response)
{
	struct world *world = open_rc();

	ask_to_read(world, 0, READ_BYTES);
	ask_to_read(world, 64, 600);
	inject_atomic(world, 67, 5);
	ask_to_read(world, 64, 600);
	ask_to_read(world, 66, 88); /* the end of the read */
	inject_atomic(world, 67, 5);
	ask_to_read(world, 32, READ_BYTES / 2);
	transcript_check(world, "< RESPONSE f 0 256 bytes msn 1\n"
				"< RESPONSE f 32 256 bytes msn 3\n"
				"< RESPONSE l 63 256 bytes msn 3\n"
				"< RESPONSE f 64 256 bytes msn 2\n"
				"< RESPONSE l 66 88 bytes msn 2\n"
				"< ATOMIC_RESPONSE  67 was 0 msn 3\n");
	world_close(world);
}

TEST(nak_of_a_refusal_follows_the_responses_to_earlier_reads)
{
	struct world *world = open_rc();

	ask_to_read(world, 0, READ_BYTES);
	world_inject_packet(world, 1,
			    (struct fab_packet){ .op = FAB_OP_WRITE,
						 .flags = FAB_FIRST | FAB_LAST,
						 .psn = 64,
						 .rkey = 1,
						 .dma_bytes = 4,
						 .bytes = 4 });
	inject_write(world, 65, FAB_ASK_ACK);
	transcript_check(world, "< RESPONSE f 0 256 bytes msn 1\n"
				"< RESPONSE l 63 256 bytes msn 1\n"
				"< NAK  64 why 2 msn 1\n"
				"event 1: local access violation work queue error\n");
	world_close(world);
}

/* --- a requester ----------------------------------------------------------- */

static void inject_answer(struct world *world, uint8_t op, uint32_t psn, uint8_t syndrome)
{
	world_inject_packet(world, 0,
			    (struct fab_packet){ .op = op,
						 .flags = FAB_FIRST | FAB_LAST,
						 .psn = psn,
						 .syndrome = syndrome,
						 .rnr_timer = 20 });
}

static enum fate lose_all(unsigned int number, void *arg)
{
	(void)number;
	(void)arg;
	return FATE_LOST;
}

/* 9.7.6.1: a response must match a sent request. */
TEST(answers_without_a_request_are_ignored)
{
	struct world *world = open_rc();

	inject_answer(world, FAB_OP_ACK, 0, 0);
	inject_answer(world, FAB_OP_NAK, 0, FAB_NAK_REMOTE_ACCESS);
	inject_answer(world, FAB_OP_READ_RESPONSE, 0, 0);
	post(world, IBV_WR_RDMA_WRITE, 300);
	inject_answer(world, FAB_OP_ACK, 2, 0);
	inject_answer(world, FAB_OP_ACK, 0xffffff, 0);
	inject_answer(world, FAB_OP_NAK, 2, FAB_NAK_REMOTE_ACCESS);
	inject_answer(world, FAB_OP_NAK, 0xffffff, FAB_NAK_REMOTE_ACCESS);
	inject_answer(world, FAB_OP_READ_RESPONSE, 2, 0);
	inject_answer(world, FAB_OP_ATOMIC_RESPONSE, 0xffffff, 0);
	transcript_check(world, "> WRITE f 0 at 4096+300 256 bytes\n"
				"> WRITE la 1 44 bytes\n"
				"< ACK  1 msn 1\n"
				"done 0\n");
	world_close(world);
}

/*
 * For a read of 1,024 bytes, each half of read_bytes: the window has become smaller after losses.
 */
#define TWO_PARTS                          \
	"> READ  0 at 4096+512\n"          \
	"> READ  2 at 4608+512\n"          \
	"< RESPONSE f 0 256 bytes msn 1\n" \
	"< RESPONSE l 1 256 bytes msn 1\n" \
	"< RESPONSE f 2 256 bytes msn 2\n" \
	"< RESPONSE l 3 256 bytes msn 2\n"

TEST(read_is_requested_in_quarters_of_a_small_window)
{
	struct world *world = open_rc();

	to_qp(world->end[0].qp)->sq.window = 8;
	post(world, IBV_WR_RDMA_READ, 1024);
	transcript_check(world, TWO_PARTS "done 0\n");
	world_close(world);
}

/* The second response is lost, and the window has grown before the rest is requested again. */
TEST(parts_of_a_read_keep_their_ends)
{
	struct world *world = open_rc();
	struct fab_qp *qp = to_qp(world->end[0].qp);

	qp->sq.window = 8;
	transcript_lost = 3;
	post(world, IBV_WR_RDMA_READ, 1024);
	qp->sq.window = 64;
	transcript_check(world, TWO_PARTS "> READ  1 at 4352+256\n"
					  "> READ  2 at 4608+512\n"
					  "< RESPONSE fl 1 256 bytes msn 2\n"
					  "< RESPONSE f 2 256 bytes msn 2\n"
					  "< RESPONSE l 3 256 bytes msn 2\n"
					  "done 0\n");
	world_close(world);
}

/* 9.7.5.2: the next response shows that one was lost, which is requested once. */
TEST(later_answer_shows_a_lost_response)
{
	struct world *world = open_rc();

	transcript_lost = 4;
	post(world, IBV_WR_RDMA_WRITE, 8);
	post(world, IBV_WR_RDMA_READ, 600);
	post(world, IBV_WR_RDMA_WRITE, 8);
	transcript_check(world, "> WRITE fla 0 at 4096+8 8 bytes\n"
				"> READ  1 at 4096+600\n"
				"> WRITE fla 4 at 4096+8 8 bytes\n"
				"< ACK  0 msn 1\n"
				"< RESPONSE f 1 256 bytes msn 2\n"
				"< RESPONSE l 3 88 bytes msn 2\n"
				"< ACK  4 msn 3\n"
				"> READ  1 at 4096+600\n"
				"> WRITE fla 4 at 4096+8 8 bytes\n"
				"< RESPONSE f 1 256 bytes msn 3\n"
				"< RESPONSE l 3 88 bytes msn 3\n"
				"< ACK  4 msn 3\n"
				"done 0\n"
				"done 0\n"
				"done 0\n");
	world_close(world);
}

/* Table 45, and 9.9.2: a NAK acknowledges all packets before it. */
TEST_LOOP(nak_ends_its_request, FAB_NAK_INVALID_REQUEST, FAB_NAK_RNR)
{
	static const enum ibv_wc_status status[] = {
		[FAB_NAK_INVALID_REQUEST] = IBV_WC_REM_INV_REQ_ERR,
		[FAB_NAK_REMOTE_ACCESS] = IBV_WC_REM_ACCESS_ERR,
		[FAB_NAK_REMOTE_OPERATION] = IBV_WC_REM_OP_ERR,
	};
	struct world *world = open_rc();
	char wanted[512];

	world->fate_of = lose_all;
	post(world, IBV_WR_RDMA_WRITE, 8);
	post(world, IBV_WR_RDMA_WRITE, 8);
	post(world, IBV_WR_RDMA_WRITE, 8);
	inject_answer(world, FAB_OP_NAK, 1, (uint8_t)_i);
	snprintf(wanted, sizeof(wanted),
		 "> WRITE fla 0 at 4096+8 8 bytes\n> WRITE fla 1 at 4096+8 8 bytes\n"
		 "> WRITE fla 2 at 4096+8 8 bytes\ndone 0\ndone 0 status %d\ndone 0 status %d\n",
		 status[_i], IBV_WC_WR_FLUSH_ERR);
	transcript_check(world, wanted);
	world_close(world);
}

/* 9.7.6.1.2: it waits as long as the peer requests, whatever else arrives. */
TEST(requester_waits_after_each_rnr_nak)
{
	struct world *world = open_rc();

	world->fate_of = lose_all;
	post(world, IBV_WR_RDMA_WRITE, 300);
	inject_answer(world, FAB_OP_NAK, 0, FAB_NAK_RNR);
	inject_answer(world, FAB_OP_NAK, 0, FAB_NAK_SEQUENCE);
	world->fate_of = NULL;
	world_run_for(world, 10240000 - 1);
	transcript_add("so late\n");
	transcript_check(world, "> WRITE f 0 at 4096+300 256 bytes\n"
				"> WRITE la 1 44 bytes\n"
				"so late\n"
				"> WRITE f 0 at 4096+300 256 bytes\n"
				"> WRITE la 1 44 bytes\n"
				"< ACK  1 msn 1\n"
				"done 0\n");
	world_close(world);
}

/* 9.7.6.1: a response must have the right length. */
TEST(response_of_another_length_ends_the_read)
{
	struct world *world = open_rc();

	world->fate_of = lose_all;
	post(world, IBV_WR_RDMA_READ, 8);
	world_inject_packet(world, 0,
			    (struct fab_packet){ .op = FAB_OP_READ_RESPONSE,
						 .flags = FAB_FIRST | FAB_LAST,
						 .bytes = 12 });
	transcript_check(world, "> READ  0 at 4096+8\n"
				"done 0 status 7\n");
	world_close(world);
}

static void inject_response(struct world *world, uint32_t psn, uint8_t flags, uint32_t bytes)
{
	world_inject_packet(
		world, 0,
		(struct fab_packet){
			.op = FAB_OP_READ_RESPONSE, .flags = flags, .psn = psn, .bytes = bytes });
}

#define ONLY (FAB_FIRST | FAB_LAST)

static const struct {
	enum ibv_wr_opcode opcode;
	uint32_t bytes;
	unsigned int n_good; /* first, then middle responses */
	uint8_t op, flags;   /* of the next response */
	uint32_t response_bytes;
} unexpected[] = {
	{ IBV_WR_RDMA_WRITE, 256, 0, FAB_OP_READ_RESPONSE, ONLY, 256 },
	{ IBV_WR_RDMA_WRITE, 256, 0, FAB_OP_READ_RESPONSE, ONLY, 0 },
	{ IBV_WR_SEND, 256, 0, FAB_OP_ATOMIC_RESPONSE, ONLY, 0 },
	{ IBV_WR_RDMA_READ, 256, 0, FAB_OP_ATOMIC_RESPONSE, ONLY, 0 },
	{ IBV_WR_ATOMIC_FETCH_AND_ADD, 8, 0, FAB_OP_READ_RESPONSE, ONLY, 8 },
	{ IBV_WR_ATOMIC_WRITE, 8, 0, FAB_OP_READ_RESPONSE, ONLY, 4 },
	{ IBV_WR_ATOMIC_WRITE, 8, 0, FAB_OP_READ_RESPONSE, FAB_FIRST, 0 },
	{ IBV_WR_ATOMIC_WRITE, 8, 0, FAB_OP_ATOMIC_RESPONSE, ONLY, 0 },
	/* for one packet */
	{ IBV_WR_RDMA_READ, 256, 0, FAB_OP_READ_RESPONSE, FAB_FIRST, 256 },
	{ IBV_WR_RDMA_READ, 256, 0, FAB_OP_READ_RESPONSE, 0, 256 },
	{ IBV_WR_RDMA_READ, 256, 0, FAB_OP_READ_RESPONSE, FAB_LAST, 256 },
	/* for three packets */
	{ IBV_WR_RDMA_READ, 768, 0, FAB_OP_READ_RESPONSE, 0, 256 },
	{ IBV_WR_RDMA_READ, 768, 0, FAB_OP_READ_RESPONSE, FAB_LAST, 256 },
	{ IBV_WR_RDMA_READ, 768, 0, FAB_OP_READ_RESPONSE, ONLY, 256 },
	{ IBV_WR_RDMA_READ, 768, 1, FAB_OP_READ_RESPONSE, FAB_FIRST, 256 },
	{ IBV_WR_RDMA_READ, 768, 1, FAB_OP_READ_RESPONSE, FAB_LAST, 256 },
	{ IBV_WR_RDMA_READ, 768, 2, FAB_OP_READ_RESPONSE, 0, 256 },
	{ IBV_WR_RDMA_READ, 768, 2, FAB_OP_READ_RESPONSE, ONLY, 256 },
};

/* 9.9.2: a response with another opcode than that of the PSN is bad. */
TEST_LOOP(response_of_another_kind_ends_the_request, 0, sizeof(unexpected) / sizeof(unexpected[0]))
{
	struct world *world = open_rc();
	unsigned int i;

	world->fate_of = lose_all;
	post(world, unexpected[_i].opcode, unexpected[_i].bytes);
	transcript_forget();
	for (i = 0; i < unexpected[_i].n_good; i++)
		inject_response(world, i, i ? 0 : FAB_FIRST, 256);
	if (unexpected[_i].op == FAB_OP_READ_RESPONSE)
		inject_response(world, i, unexpected[_i].flags, unexpected[_i].response_bytes);
	else
		inject_answer(world, unexpected[_i].op, i, 0);
	transcript_check(world, "done 0 status 7\n");
	world_close(world);
}

/* Annex A19. */
TEST(atomic_write_is_answered_by_an_empty_response)
{
	struct world *world = open_rc();

	post(world, IBV_WR_ATOMIC_WRITE, 8);
	transcript_check(world, "> ATOMIC_WRITE fla 0 8 bytes\n"
				"< RESPONSE fl 0 msn 1\n"
				"done 0\n");
	world_close(world);
}

/* The response to a repeated request is a "first", that to the original request is a "middle". */
TEST_LOOP(rest_of_a_read_continues_or_starts_as_first, 0, 2)
{
	struct world *world = open_rc();

	world->fate_of = lose_all;
	post(world, IBV_WR_RDMA_READ, 2048); /* in two parts */
	inject_response(world, 0, FAB_FIRST, 256);
	inject_response(world, 2, 0, 256); /* the response 1 was lost */
	inject_response(world, 1, _i ? FAB_FIRST : 0, 256);
	inject_response(world, 2, 0, 256);
	inject_response(world, 3, FAB_LAST, 256);
	inject_response(world, 4, FAB_FIRST, 256);
	inject_response(world, 5, 0, 256);
	inject_response(world, 6, 0, 256);
	inject_response(world, 7, FAB_LAST, 256);
	transcript_check(world, "> READ  0 at 4096+1024\n"
				"> READ  4 at 5120+1024\n"
				"> READ  1 at 4352+768\n"
				"> READ  4 at 5120+1024\n"
				"done 0\n");
	world_close(world);
}

/* 9.7.6.1.3: retry_cnt is 7. */
TEST(requester_gives_up_after_seven_retries)
{
	struct world *world = open_rc();

	world->fate_of = lose_all;
	post(world, IBV_WR_RDMA_WRITE, 8);
	post(world, IBV_WR_RDMA_READ, 8);
	transcript_check(world, "> WRITE fla 0 at 4096+8 8 bytes\n"
				"> READ  1 at 4096+8\n"
				"> WRITE fla 0 at 4096+8 8 bytes\n"
				"> READ  1 at 4096+8\n"
				"> WRITE fla 0 at 4096+8 8 bytes\n"
				"> READ  1 at 4096+8\n"
				"> WRITE fla 0 at 4096+8 8 bytes\n"
				"> READ  1 at 4096+8\n"
				"> WRITE fla 0 at 4096+8 8 bytes\n"
				"> READ  1 at 4096+8\n"
				"> WRITE fla 0 at 4096+8 8 bytes\n"
				"> READ  1 at 4096+8\n"
				"> WRITE fla 0 at 4096+8 8 bytes\n"
				"> READ  1 at 4096+8\n"
				"> WRITE fla 0 at 4096+8 8 bytes\n"
				"> READ  1 at 4096+8\n"
				"done 0 status 12\n"
				"done 0 status 5\n");
	ck_assert_uint_eq(world->now_ns, 1 + 8 * (4096ull << 10));
	world_close(world);
}

static void drain(struct world *world, enum ibv_qp_state state)
{
	struct ibv_qp_attr attr = { .qp_state = state };

	ck_assert_int_eq(ibv_modify_qp(world->end[0].qp, &attr, IBV_QP_STATE), 0);
}

/* 10.3.1.5: started requests are completed, and no new one starts. */
TEST(draining_queue_pair_starts_no_request)
{
	struct world *world = open_rc();

	post(world, IBV_WR_RDMA_WRITE, 4608);
	drain(world, IBV_QPS_SQD);
	post(world, IBV_WR_RDMA_WRITE, 8);
	world_run(world);
	transcript_add("drained\n");
	drain(world, IBV_QPS_RTS);
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
				"drained\n"
				"> WRITE fla 18 at 4096+8 8 bytes\n"
				"< ACK  18 msn 2\n"
				"done 0\n"
				"done 0\n");
	world_close(world);
}
