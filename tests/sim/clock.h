/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Virtual time: a queue of planned events, earliest first; events of the same time happen in the
 * order of planning. The timers of the cores are not in it, see world.c.
 */
#ifndef TESTS_SIM_CLOCK_H
#define TESTS_SIM_CLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum plan_kind {
	PLAN_ARRIVE, /* a packet arrives; .what is its number in the net's pool */
	PLAN_CALL,   /* an application calls; .what is the id's number, .more the verb */
	PLAN_WORLD,  /* .what is an enum world_act, .more its argument: see program.h */
};

struct plan {
	uint64_t at_ns;
	uint64_t order; /* of planning; set by clock_plan() */
	enum plan_kind kind;
	uint8_t host; /* the host concerned */
	uint32_t what;
	uint32_t more;
};

struct clock {
	struct plan *heap;
	size_t n_plans;
	size_t n_room;
	uint64_t n_planned; /* total number */
};

/** clock_fini() - free the queue. An empty one is all zero. */
void clock_fini(struct clock *clock);

/** clock_clear() - drop all plans, keep the memory. */
void clock_clear(struct clock *clock);

/** clock_plan() - plan an event. */
void clock_plan(struct clock *clock, struct plan plan);

/** clock_next() - the earliest plan, or NULL. */
static inline const struct plan *clock_next(const struct clock *clock)
{
	return clock->n_plans ? &clock->heap[0] : NULL;
}

/** clock_take() - remove the earliest plan and return it; there must be one. */
struct plan clock_take(struct clock *clock);

#endif
