/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ACKs of a program that takes turns with its peer: they are deferred until its answer, for a
 * limited time. And the end of a turn of the device, which handles several packets at a time.
 */
#include <string.h>

#include "tests/roce/transcript.h"
#include "tests/roce/turns.h"
#include "tools/fabric/verbs/carrier.h"
#include "tools/fabric/verbs/engine.h"
#include "tools/fabric/verbs/transport.h"

#define TURNS 8 /* from this number on, ACKs are deferred */
#define POLLS 8 /* after this number in vain, they are sent */

/* The second end has answered TURNS messages, and gets one more. */
static struct world *open_after_turns(void)
{
	struct world *world = transcript_open(&(struct world_config){ .type = IBV_QPT_RC });
	unsigned int i;

	for (i = 0; i < TURNS; i++) {
		post_from(world, 0, IBV_WR_SEND);
		ck_assert_int_gt(poll_end(world, 1), 0);
		post_from(world, 1, IBV_WR_SEND);
		ck_assert_int_gt(poll_end(world, 0), 0);
	}
	transcript_forget();
	post_from(world, 0, IBV_WR_SEND);
	transcript_compare("> SEND fla 8 16 bytes\n");
	return world;
}

TEST(acks_are_immediate_until_the_program_has_taken_turns)
{
	struct world *world = transcript_open(&(struct world_config){ .type = IBV_QPT_RC });

	post_from(world, 0, IBV_WR_SEND);
	transcript_compare("> SEND fla 0 16 bytes\n"
			   "< ACK  0 msn 1\n");
	post_from(world, 1, IBV_WR_SEND);
	transcript_compare("< SEND fla 0 16 bytes\n"
			   "> ACK  0 msn 1\n");
	world_close(world);
}

/*
 * In this order: a program that waits for events may wait for that of the ACK first (ib_send_lat
 * -e).
 */
TEST(an_ack_leaves_with_the_answer_of_a_program_that_takes_turns)
{
	struct world *world = open_after_turns();

	post_from(world, 1, IBV_WR_SEND);
	transcript_compare("< ACK  8 msn 9\n"
			   "< SEND fla 8 16 bytes\n");
	world_close(world);
}

/* A program that polls its memory (ib_write_lat) polls until it has the ACK, and then reads. */
TEST(an_ack_follows_an_answer_that_is_a_write)
{
	struct ibv_send_wr wr = { .opcode = IBV_WR_RDMA_WRITE };
	struct world *world = open_after_turns();

	ck_assert_int_eq(world_post(world, 1, &wr, 0, 512, 16), 0);
	world_run_for(world, FLIGHT_NS);
	transcript_compare("< WRITE fla 8 at 512+16 16 bytes\n"
			   "< ACK  8 msn 9\n");
	world_close(world);
}

static bool are_coalesced(const struct fab_context *context)
{
	(void)context;
	return false;
}

/* The peer can handle it while the program prepares its answer. */
TEST(no_ack_is_deferred_where_two_packets_do_not_leave_together)
{
	struct world *world = open_after_turns();
	struct carrier carrier = *world->end[1].context.carrier;

	carrier.coalesces = are_coalesced;
	world->end[1].context.carrier = &carrier;
	post_from(world, 1, IBV_WR_SEND);
	ck_assert_int_gt(poll_end(world, 0), 0);
	transcript_forget();
	post_from(world, 0, IBV_WR_SEND);
	transcript_compare("> ACK  8 msn 9\n"
			   "> SEND fla 9 16 bytes\n"
			   "< ACK  9 msn 10\n");
	world_close(world);
}

/* The peer's program waits for it, and checking for more packets costs a system call. */
TEST(a_turn_ends_with_the_message_that_a_program_waits_for)
{
	struct world *world = open_after_turns();

	post_from(world, 1, IBV_WR_SEND);
	world->end[1].context.has_answer = false;
	post_from(world, 0, IBV_WR_SEND);
	ck_assert(world->end[1].context.has_answer);
	world_close(world);
}

/* One poll in vain is not enough: the peer's ACK, for which it polls, may follow the write. */
TEST(an_ack_is_sent_when_the_program_polls_in_vain)
{
	struct world *world = open_after_turns();

	ck_assert_int_gt(poll_end(world, 1), 0);
	poll_in_vain(world, 1, POLLS - 1);
	transcript_compare("");
	poll_in_vain(world, 1, 1);
	transcript_compare("< ACK  8 msn 9\n");
	post_from(world, 0, IBV_WR_SEND);
	transcript_compare("> SEND fla 9 16 bytes\n"
			   "< ACK  9 msn 10\n");
	world_close(world);
}

/* The first tick may come when the program is about to answer. */
TEST(an_ack_is_sent_at_the_second_tick)
{
	struct world *world = open_after_turns();

	context_expire(&world->end[1].context);
	transcript_compare("");
	context_expire(&world->end[1].context);
	transcript_compare("< ACK  8 msn 9\n");
	world_close(world);
}

TEST(an_ack_is_sent_when_another_message_arrives)
{
	struct world *world = open_after_turns();

	post_from(world, 0, IBV_WR_SEND);
	transcript_compare("> SEND fla 9 16 bytes\n"
			   "< ACK  9 msn 10\n");
	world_close(world);
}

TEST(a_repeated_message_is_acknowledged_at_once)
{
	struct world *world = open_after_turns();

	world_inject_packet(world, 1,
			    (struct fab_packet){ .op = FAB_OP_SEND,
						 .flags = FAB_FIRST | FAB_LAST | FAB_ASK_ACK,
						 .psn = TURNS,
						 .bytes = 16 });
	transcript_compare("< ACK  8 msn 9\n");
	world_close(world);
}

TEST(a_nak_replaces_a_deferred_ack)
{
	struct world *world = open_after_turns();

	transcript_lost = world->n_sent;
	post_from(world, 0, IBV_WR_SEND);
	post_from(world, 0, IBV_WR_SEND);
	transcript_compare("> SEND fla 9 16 bytes\n"
			   "> SEND fla 10 16 bytes\n"
			   "< NAK  9 why 0 msn 9\n"
			   "> SEND fla 9 16 bytes\n"
			   "> SEND fla 10 16 bytes\n"
			   "< ACK  9 msn 10\n"
			   "< ACK  10 msn 11\n");
	world_close(world);
}

static void change_state(struct ibv_qp *qp, enum ibv_qp_state state)
{
	ck_assert_int_eq(
		ibv_modify_qp(qp, &(struct ibv_qp_attr){ .qp_state = state }, IBV_QP_STATE), 0);
}

TEST(a_deferred_ack_is_sent_before_the_queue_pair_ends)
{
	static const enum ibv_qp_state states[] = { IBV_QPS_RESET, IBV_QPS_ERR };
	unsigned int i;

	for (i = 0; i < 2; i++) {
		struct world *world = open_after_turns();

		change_state(world->end[1].qp, states[i]);
		transcript_compare("< ACK  8 msn 9\n");
		world_close(world);
	}
}

/* --- turns of the device --------------------------------------------------- */

static struct fab_packet
	coming; /* an endless sequence of packets like this one, taken off the wire */
static unsigned int n_taken, n_taken_at_flush;

static bool take_coming(struct fab_context *context, deliver_fn *deliver)
{
	uint8_t payload[16] = { 0 };

	n_taken++;
	deliver(context, &coming, payload);
	coming.psn++;
	return true;
}

static void note_flush(struct fab_context *context)
{
	(void)context;
	n_taken_at_flush = n_taken;
}

/* Return: number of packets to the second end that it handles before it sends. */
static unsigned int packets_of_turn(struct world *world, struct fab_packet like)
{
	struct fab_context *context = &world->end[1].context;
	static struct carrier carrier;

	carrier = *context->carrier;
	transport_header(to_qp(world->end[0].qp), &coming);
	coming.op = like.op;
	coming.flags |= like.flags;
	coming.bytes = like.bytes;
	coming.dma_bytes = like.dma_bytes;
	coming.rkey = world->end[1].mr->rkey;
	n_taken = 0;
	carrier.batch = 4;
	carrier.take = take_coming;
	carrier.flush = note_flush;
	context->carrier = &carrier;
	ck_assert_int_eq(context_progress(context, true), PROGRESS_MORE);
	return n_taken_at_flush;
}

TEST(a_turn_has_several_writes)
{
	struct world *world = transcript_open(&(struct world_config){ .type = IBV_QPT_RC });
	unsigned int n = packets_of_turn(world, (struct fab_packet){ .op = FAB_OP_WRITE,
								     .flags = FAB_FIRST | FAB_LAST,
								     .bytes = 16,
								     .dma_bytes = 16 });

	ck_assert_int_eq(n, 4);
	world_close(world);
}

/* The peer waits for it, and checking for more packets costs a system call. */
TEST(a_turn_ends_with_the_answer_to_a_read)
{
	struct world *world = transcript_open(&(struct world_config){ .type = IBV_QPT_RC });
	unsigned int n =
		packets_of_turn(world, (struct fab_packet){ .op = FAB_OP_READ, .dma_bytes = 16 });

	ck_assert_int_eq(n, 1);
	world_close(world);
}

/* Requests arrive faster than they can be answered, and most are duplicates. */
TEST(a_turn_continues_after_a_duplicate)
{
	struct world *world = transcript_open(&(struct world_config){ .type = IBV_QPT_RC });
	const struct fab_packet read = { .op = FAB_OP_READ, .dma_bytes = 16 };

	ck_assert_int_eq(packets_of_turn(world, read), 1);
	ck_assert_int_eq(packets_of_turn(world, read), 2);
	world_close(world);
}
