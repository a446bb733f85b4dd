/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Completions of writes that are held back from a program that takes turns with its peer, on hosts
 * where two packets cannot leave together.
 */
#include "tests/roce/turns.h"
#include "tools/fabric/verbs/carrier.h"
#include "tools/fabric/verbs/engine.h"

#define TURNS 8	 /* from this number on, completions are held back */
#define POLLS 64 /* after this number, they are shown */

static bool are_coalesced(const struct fab_context *context)
{
	(void)context;
	return false;
}

/* Return: two ends; the first has answered @turns messages by @opcode, and received all ACKs. */
static struct world *open_after_turns(unsigned int turns, enum ibv_wr_opcode opcode)
{
	struct world *world = world_open(&(struct world_config){ .type = IBV_QPT_RC });
	static struct carrier carrier;
	unsigned int i;

	carrier = *world->end[0].context.carrier;
	carrier.coalesces = are_coalesced;
	for (i = 0; i < 2; i++)
		world->end[i].context.carrier = &carrier;
	for (i = 0; i < turns; i++) {
		post_from(world, 1, opcode);
		poll_end(world, 0);
		poll_end(world, 1);
		post_from(world, 0, opcode);
		if (i + 1 < turns)
			poll_end(world, 0);
	}
	return world;
}

TEST(a_completion_is_shown_at_once_until_the_program_has_taken_turns)
{
	struct world *world = open_after_turns(TURNS - 1, IBV_WR_RDMA_WRITE);

	ck_assert_int_eq(poll_end(world, 0), 1);
	world_close(world);
}

/* A program that polls its memory for the answer (ib_write_lat) does not poll for packets. */
TEST(the_completion_of_a_write_is_held_back_until_the_peer_has_answered)
{
	struct world *world = open_after_turns(TURNS, IBV_WR_RDMA_WRITE);

	poll_in_vain(world, 0, 1);
	post_from(world, 1, IBV_WR_RDMA_WRITE);
	ck_assert_int_eq(poll_end(world, 0), 1);
	world_close(world);
}

/* The program will poll for the answer in any case. */
TEST(the_completion_of_a_send_is_not_held_back)
{
	struct world *world = open_after_turns(TURNS, IBV_WR_SEND);

	ck_assert_int_eq(poll_end(world, 0), 1);
	world_close(world);
}

TEST(a_completion_is_shown_when_the_program_polls_in_vain)
{
	struct world *world = open_after_turns(TURNS, IBV_WR_RDMA_WRITE);

	poll_in_vain(world, 0, POLLS - 1);
	ck_assert_int_eq(poll_end(world, 0), 1);
	world_close(world);
}

/* The first tick may come when the peer is about to answer. */
TEST(a_completion_is_shown_at_the_second_tick)
{
	struct world *world = open_after_turns(TURNS, IBV_WR_RDMA_WRITE);

	context_expire(&world->end[0].context);
	poll_in_vain(world, 0, 1);
	context_expire(&world->end[0].context);
	ck_assert_int_eq(poll_end(world, 0), 1);
	world_close(world);
}

TEST(a_completion_is_shown_when_another_one_follows_it)
{
	struct world *world = open_after_turns(TURNS, IBV_WR_RDMA_WRITE);

	post_from(world, 0, IBV_WR_RDMA_WRITE);
	ck_assert_int_eq(poll_end(world, 0), 1);
	world_close(world);
}

TEST(a_completion_is_shown_when_the_program_arms_a_queue)
{
	struct world *world = open_after_turns(TURNS, IBV_WR_RDMA_WRITE);

	ck_assert_int_eq(ibv_req_notify_cq(world->end[0].cq, 0), 0);
	ck_assert_int_eq(poll_end(world, 0), 1);
	world_close(world);
}

static void change_state(struct ibv_qp *qp, enum ibv_qp_state state)
{
	ck_assert_int_eq(
		ibv_modify_qp(qp, &(struct ibv_qp_attr){ .qp_state = state }, IBV_QP_STATE), 0);
}

TEST(a_completion_is_shown_when_the_queue_pair_fails)
{
	struct world *world = open_after_turns(TURNS, IBV_WR_RDMA_WRITE);

	change_state(world->end[0].qp, IBV_QPS_ERR);
	ck_assert_int_gt(poll_end(world, 0), 1); /* plus the receives */
	world_close(world);
}

TEST(a_queue_pair_that_is_reset_holds_nothing_back)
{
	struct world *world = open_after_turns(TURNS, IBV_WR_RDMA_WRITE);

	change_state(world->end[0].qp, IBV_QPS_RESET);
	ck_assert_ptr_null(world->end[0].context.held);
	ck_assert(!to_cq(world->end[0].cq)->is_last_held);
	world_close(world);
}
