/* SPDX-License-Identifier: BSD-2-Clause */
/* Two programs that send each other messages in turns; for test_turns.c and test_held.c. */
#ifndef TESTS_ROCE_TURNS_H
#define TESTS_ROCE_TURNS_H

#include "tests/roce/world.h"
#include "tests/unit/test.h"

#define FLIGHT_NS 50000

/** post_from() - an end posts 16 bytes, and the other one receives them */
static inline void post_from(struct world *world, unsigned int end, enum ibv_wr_opcode opcode)
{
	struct ibv_send_wr wr = { .opcode = opcode };

	world_receive(world, !end, 0, 1024, 256);
	ck_assert_int_eq(world_post(world, end, &wr, 0, 0, 16), 0);
	world_run_for(world, FLIGHT_NS);
}

/** poll_end() - poll an end once. Return: the number of its completions. */
static inline int poll_end(struct world *world, unsigned int end)
{
	struct ibv_wc wc[8];

	return ibv_poll_cq(world->end[end].cq, 8, wc);
}

/** poll_in_vain() - poll an end several times, without completions */
static inline void poll_in_vain(struct world *world, unsigned int end, unsigned int times)
{
	for (; times; times--)
		ck_assert_int_eq(poll_end(world, end), 0);
}

#endif
