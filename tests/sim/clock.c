/* SPDX-License-Identifier: BSD-2-Clause */
/* A binary heap of plans: see clock.h. */
#include "tests/sim/clock.h"

#undef NDEBUG /* assert() must execute its calls in release builds, too */
#include <assert.h>
#include <stdlib.h>

void clock_fini(struct clock *clock)
{
	free(clock->heap);
	*clock = (struct clock){ 0 };
}

void clock_clear(struct clock *clock)
{
	clock->n_plans = 0;
	clock->n_planned = 0;
}

static bool is_before(const struct plan *a, const struct plan *b)
{
	return a->at_ns != b->at_ns ? a->at_ns < b->at_ns : a->order < b->order;
}

static void make_room(struct clock *clock)
{
	if (clock->n_plans < clock->n_room)
		return;
	clock->n_room = clock->n_room ? 2 * clock->n_room : 64;
	clock->heap = realloc(clock->heap, clock->n_room * sizeof(clock->heap[0]));
	if (!clock->heap)
		abort();
}

void clock_plan(struct clock *clock, struct plan plan)
{
	size_t at, up;

	make_room(clock);
	plan.order = clock->n_planned++;
	for (at = clock->n_plans++; at; at = up) {
		up = (at - 1) / 2;
		if (!is_before(&plan, &clock->heap[up]))
			break;
		clock->heap[at] = clock->heap[up];
	}
	clock->heap[at] = plan;
}

struct plan clock_take(struct clock *clock)
{
	struct plan first, last;
	size_t at = 0, down;

	assert(clock->n_plans);

	first = clock->heap[0];
	last = clock->heap[--clock->n_plans];
	while ((down = 2 * at + 1) < clock->n_plans) {
		if (down + 1 < clock->n_plans &&
		    is_before(&clock->heap[down + 1], &clock->heap[down]))
			down++;
		if (!is_before(&clock->heap[down], &last))
			break;
		clock->heap[at] = clock->heap[down];
		at = down;
	}
	clock->heap[at] = last;
	return first;
}
