/* SPDX-License-Identifier: BSD-2-Clause */
/* base/timer.c: the heap, with examples and compared with a plain array. */
#include "base/timer.h"
#include "tests/unit/test.h"

#define N_TIMERS 500
#define N_ROUNDS 20000

static struct cm_time at(uint64_t ns)
{
	return (struct cm_time){ ns };
}

TEST(empty_heap_is_never_due)
{
	struct cm_timers timers = { 0 };

	ck_assert_uint_eq(cm_timers_deadline(&timers).ns, UINT64_MAX);
	ck_assert_ptr_null(cm_timers_pop(&timers, at(UINT64_MAX)));
}

TEST(timer_is_due_at_its_deadline_and_not_before)
{
	struct cm_timers timers = { 0 };
	struct cm_timer timer = { 0 };

	cm_timer_arm(&timers, &timer, at(10));
	ck_assert_ptr_null(cm_timers_pop(&timers, at(9)));
	ck_assert_ptr_eq(cm_timers_pop(&timers, at(10)), &timer);
	ck_assert_ptr_null(cm_timers_pop(&timers, at(10)));
}

TEST(popped_timer_is_not_armed)
{
	struct cm_timers timers = { 0 };
	struct cm_timer timer = { 0 };

	cm_timer_arm(&timers, &timer, at(1));
	ck_assert(cm_timer_is_armed(&timer));
	cm_timers_pop(&timers, at(1));
	ck_assert(!cm_timer_is_armed(&timer));
}

TEST(arming_again_moves_the_deadline)
{
	struct cm_timers timers = { 0 };
	struct cm_timer timer = { 0 }, other = { 0 };

	cm_timer_arm(&timers, &timer, at(5));
	cm_timer_arm(&timers, &other, at(7));
	cm_timer_arm(&timers, &timer, at(9));
	ck_assert_ptr_eq(cm_timers_pop(&timers, at(100)), &other);
	ck_assert_ptr_eq(cm_timers_pop(&timers, at(100)), &timer);
}

TEST(disarming_twice_is_harmless)
{
	struct cm_timers timers = { 0 };
	struct cm_timer timer = { 0 }, other = { 0 };

	cm_timer_arm(&timers, &timer, at(5));
	cm_timer_arm(&timers, &other, at(6));
	cm_timer_disarm(&timers, &timer);
	cm_timer_disarm(&timers, &timer);
	ck_assert_uint_eq(cm_timers_deadline(&timers).ns, 6);
}

TEST(many_timers_of_one_deadline_are_all_popped)
{
	static struct cm_timer timer[N_TIMERS];
	struct cm_timers timers = { 0 };
	unsigned int n = 0;

	for (int i = 0; i < N_TIMERS; i++)
		cm_timer_arm(&timers, &timer[i], at(3));
	while (cm_timers_pop(&timers, at(3)))
		n++;
	ck_assert_uint_eq(n, N_TIMERS);
}

/* The reference: UINT64_MAX stands for "not armed". */
static uint64_t first_of(const uint64_t *deadline)
{
	uint64_t first = UINT64_MAX;

	for (int i = 0; i < N_TIMERS; i++)
		if (deadline[i] < first)
			first = deadline[i];
	return first;
}

static void arm_or_disarm(struct cm_timers *timers, struct cm_timer *timer, uint64_t *deadline)
{
	struct cm_timer *popped;
	int i = random() % N_TIMERS;

	switch (random() % 4) {
	case 0:
	case 1:
		deadline[i] = random() % 1000;
		cm_timer_arm(timers, &timer[i], at(deadline[i]));
		break;
	case 2:
		deadline[i] = UINT64_MAX;
		cm_timer_disarm(timers, &timer[i]);
		break;
	case 3:
		popped = cm_timers_pop(timers, at(first_of(deadline) % 1000));
		if (popped) {
			ck_assert_uint_eq(deadline[popped - timer], first_of(deadline));
			deadline[popped - timer] = UINT64_MAX;
		}
		break;
	}
}

TEST_LOOP(heap_agrees_with_a_searched_array, 0, 4)
{
	static struct cm_timer timer[N_TIMERS];
	static uint64_t deadline[N_TIMERS];
	struct cm_timers timers = { 0 };

	srandom(_i);
	for (int i = 0; i < N_TIMERS; i++) {
		timer[i] = (struct cm_timer){ 0 };
		deadline[i] = UINT64_MAX;
	}
	for (int round = 0; round < N_ROUNDS; round++) {
		int i = random() % N_TIMERS;

		arm_or_disarm(&timers, timer, deadline);
		ck_assert_uint_eq(cm_timers_deadline(&timers).ns, first_of(deadline));
		ck_assert_int_eq(cm_timer_is_armed(&timer[i]), deadline[i] != UINT64_MAX);
	}
}

TEST(hundred_thousand_timers_come_out_in_order)
{
	enum {
		N = 100000
	};
	struct cm_timer *timer = calloc(N, sizeof(*timer));
	struct cm_timers timers = { 0 };
	struct cm_timer *popped;
	uint64_t last = 0;
	unsigned int n = 0;

	ck_assert_ptr_nonnull(timer);
	for (int i = 0; i < N; i++)
		cm_timer_arm(&timers, &timer[i], at(random()));
	for (; (popped = cm_timers_pop(&timers, at(UINT64_MAX))); n++) {
		ck_assert_uint_ge(popped->deadline.ns, last);
		last = popped->deadline.ns;
	}
	ck_assert_uint_eq(n, N);
	free(timer);
}

TEST(a_timeout_is_rounded_up_to_the_next_millisecond)
{
	struct cm_time now = { 5 };

	ck_assert_int_eq(cm_time_ms_until(CM_TIME_NEVER, now), -1);
	ck_assert_int_eq(cm_time_ms_until((struct cm_time){ 5 }, now), 0);
	ck_assert_int_eq(cm_time_ms_until((struct cm_time){ 6 }, now), 1);
	ck_assert_int_eq(cm_time_ms_until(cm_time_after(now, 3 * CM_NS_PER_MS), now), 3);
}
