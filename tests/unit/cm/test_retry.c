/* SPDX-License-Identifier: BSD-2-Clause */
/* cm/retry.c: when a message is retransmitted and when it is given up; encoded times. */
#include "cm/retry.h"
#include "tests/unit/test.h"

#define START_NS  UINT64_C(123456789)
#define LIFE_TIME 18 /* of a RoCE path, as in the kernel: 1024 ms */

static struct cm_time after_ms(uint64_t ms)
{
	return (struct cm_time){ START_NS + ms * CM_NS_PER_MS };
}

static uint64_t ms_since_start(struct cm_time time)
{
	return (time.ns - START_NS) / CM_NS_PER_MS;
}

static void init(struct cm_retry *retry, uint64_t give_up_ms)
{
	cm_retry_init(retry, give_up_ms * CM_NS_PER_MS, after_ms(0));
}

/*
 * Transmits until no retransmission is left. Return: the number; *ret_end_ms is the time of giving
 * up.
 */
static unsigned int transmit_all(struct cm_retry *retry, uint64_t *ret_end_ms)
{
	struct cm_time now = after_ms(0);
	unsigned int n = 0;

	do {
		now = cm_retry_next(retry, now);
		ck_assert_uint_lt(++n, 100000);
	} while (!cm_retry_is_spent(retry, now));
	*ret_end_ms = ms_since_start(now);
	return n;
}

TEST(default_is_16_transmissions_in_50_seconds)
{
	struct cm_retry retry;
	uint64_t end_ms;

	init(&retry, 0);
	ck_assert_uint_eq(transmit_all(&retry, &end_ms), 16);
	ck_assert_uint_eq(end_ms, 50000);
}

TEST(number_of_transmissions_can_be_set)
{
	const struct cm_waits waits = { .transmissions_max = 3 };
	struct cm_retry retry;
	uint64_t end_ms;

	init(&retry, 0);
	cm_retry_set_waits(&retry, &waits);
	ck_assert_uint_eq(transmit_all(&retry, &end_ms), 3);
	ck_assert_uint_eq(end_ms, 3000);
}

TEST(retries_end_by_number_or_time)
{
	const struct cm_waits few = { .transmissions_max = 2 }, many = { .transmissions_max = 200 };
	struct cm_retry retry;
	uint64_t end_ms;

	init(&retry, 3500);
	cm_retry_set_waits(&retry, &few);
	ck_assert_uint_eq(transmit_all(&retry, &end_ms), 2);
	init(&retry, 3500);
	cm_retry_set_waits(&retry, &many);
	transmit_all(&retry, &end_ms);
	ck_assert_uint_eq(end_ms, 3500);
}

TEST(default_retransmissions_have_fixed_times)
{
	static const uint64_t expected_ms[] = { 1000,  2000,  3000,  4000,  6000,  10000,
						14000, 18000, 22000, 26000, 30000, 34000,
						38000, 42000, 46000, 50000 };
	struct cm_time now = after_ms(0);
	struct cm_retry retry;

	init(&retry, 0);
	for (unsigned int i = 0; i < 16; i++) {
		now = cm_retry_next(&retry, now);
		ck_assert_uint_eq(ms_since_start(now), expected_ms[i]);
	}
}

TEST(lookup_is_retransmitted_later_and_for_longer)
{
	static const uint64_t expected_ms[] = { 2000,  4000,  6000,  8000,  12000, 17000,
						22000, 27000, 32000, 37000, 42000, 47000,
						52000, 57000, 62000, 67000 };
	struct cm_time now = after_ms(0);
	struct cm_retry retry;

	cm_retry_init_lookup(&retry, 0, now);
	for (unsigned int i = 0; i < 16; i++) {
		ck_assert(!cm_retry_is_spent(&retry, now));
		now = cm_retry_next(&retry, now);
		ck_assert_uint_eq(ms_since_start(now), expected_ms[i]);
	}
	ck_assert(cm_retry_is_spent(&retry, now));
}

TEST_LOOP(give_up_time_is_exact, 0, 7)
{
	static const uint64_t give_up_ms[] = { 1, 999, 1000, 1001, 7777, 50000, 300000 };
	struct cm_retry retry;
	uint64_t end_ms;

	init(&retry, give_up_ms[_i]);
	transmit_all(&retry, &end_ms);
	ck_assert_uint_eq(end_ms, give_up_ms[_i]);
}

TEST(long_give_up_time_needs_more_than_16_transmissions)
{
	struct cm_retry retry;
	uint64_t end_ms;

	init(&retry, 2000000);
	ck_assert_uint_eq(transmit_all(&retry, &end_ms), 504);
}

TEST(endless_give_up_time_never_gives_up)
{
	struct cm_time now = after_ms(0);
	struct cm_retry retry;

	cm_retry_init(&retry, UINT64_MAX, now);
	for (unsigned int i = 0; i < 1000; i++)
		now = cm_retry_next(&retry, now);
	ck_assert(!cm_retry_is_spent(&retry, now));
}

static const struct {
	struct cm_waits waits;
	uint64_t expected_ms[5]; /* due times of the retransmissions */
} schedules[] = {
	{ { 100, 100, 0 }, { 100, 200, 300, 400, 500 } },
	{ { 100, 400, 0 }, { 100, 300, 700, 1100, 1500 } },
	{ { 1, UINT32_MAX, 0 }, { 1, 3, 7, 15, 31 } },
	{ { 0, 0, 0 }, { 1000, 2000, 3000, 4000, 6000 } },
};

TEST_LOOP(intervals_double_up_to_the_last, 0, 4) /* loop test: _i is the row */
{
	struct cm_time now = after_ms(0);
	struct cm_retry retry;

	init(&retry, 0);
	cm_retry_set_waits(&retry, &schedules[_i].waits);
	for (unsigned int i = 0; i < 5; i++) {
		now = cm_retry_next(&retry, now);
		ck_assert_uint_eq(ms_since_start(now), schedules[_i].expected_ms[i]);
	}
}

TEST(intervals_of_any_length_do_not_overflow)
{
	struct cm_waits waits = { UINT32_MAX, UINT32_MAX, 0 };
	struct cm_retry retry;
	uint64_t end_ms;

	init(&retry, 0);
	cm_retry_set_waits(&retry, &waits);
	ck_assert_uint_eq(transmit_all(&retry, &end_ms), 16);
	ck_assert_uint_eq(end_ms, UINT64_C(16) * UINT32_MAX);
}

TEST(mra_overrides_the_intervals)
{
	struct cm_waits waits = { 10, 10, 0 };
	struct cm_retry retry;

	init(&retry, 0);
	cm_retry_set_waits(&retry, &waits);
	cm_retry_next(&retry, after_ms(0));
	cm_retry_wait(&retry, 20, LIFE_TIME, after_ms(0));
	ck_assert_uint_eq(ms_since_start(cm_retry_next(&retry, after_ms(6144))), 2 * 6144);
}

TEST(mra_adds_service_timeout_and_round_trip)
{
	struct cm_retry retry;

	init(&retry, 0);
	cm_retry_next(&retry, after_ms(0));
	ck_assert_uint_eq(ms_since_start(cm_retry_wait(&retry, 24, LIFE_TIME, after_ms(300))),
			  300 + 65536 + 2048);
}

TEST(mra_applies_to_later_transmissions)
{
	struct cm_retry retry;

	init(&retry, 0);
	cm_retry_next(&retry, after_ms(0));
	cm_retry_wait(&retry, 20, LIFE_TIME, after_ms(0));
	ck_assert_uint_eq(ms_since_start(cm_retry_next(&retry, after_ms(6144))), 2 * 6144);
}

TEST(mra_does_not_change_the_number_of_transmissions)
{
	struct cm_retry retry;
	struct cm_time now;
	unsigned int n = 1;

	init(&retry, 0);
	cm_retry_next(&retry, after_ms(0));
	now = cm_retry_wait(&retry, 20, LIFE_TIME, after_ms(0));
	for (; !cm_retry_is_spent(&retry, now); n++)
		now = cm_retry_next(&retry, now);
	ck_assert_uint_eq(n, 16);
}

TEST(mra_is_limited_to_69_seconds)
{
	struct cm_retry retry;

	init(&retry, 0);
	cm_retry_next(&retry, after_ms(0));
	ck_assert_uint_eq(ms_since_start(cm_retry_wait(&retry, 31, LIFE_TIME, after_ms(0))),
			  65536 + 2048);
}

/* Seed 1366 of the simulator: 16 transmissions within some milliseconds, without a peer. */
TEST(mra_does_not_shorten_an_interval)
{
	struct cm_retry retry;
	struct cm_time now;

	init(&retry, 0);
	cm_retry_next(&retry, after_ms(0));
	now = cm_retry_wait(&retry, 0, 0, after_ms(300));
	ck_assert_uint_eq(ms_since_start(now), 1300);
	ck_assert_uint_eq(ms_since_start(cm_retry_next(&retry, now)), 2300);
}

/* Seed 6788 of the simulator: the passive side has the life time from the peer's REQ. */
TEST(long_life_time_does_not_extend_an_mra)
{
	struct cm_retry retry;

	init(&retry, 0);
	cm_retry_next(&retry, after_ms(0));
	ck_assert_uint_eq(ms_since_start(cm_retry_wait(&retry, 31, 30, after_ms(0))),
			  65536 + 2 * 4096);
}

TEST(mra_does_not_move_the_give_up_time)
{
	struct cm_retry retry;
	struct cm_time now;

	init(&retry, 5000);
	cm_retry_next(&retry, after_ms(0));
	now = cm_retry_wait(&retry, 24, LIFE_TIME, after_ms(100));
	ck_assert_uint_eq(ms_since_start(now), 5000);
	ck_assert(cm_retry_is_spent(&retry, now));
}

TEST_LOOP(encoded_time_is_a_power_of_two_of_milliseconds, 0, 9)
{
	static const struct {
		uint8_t t;
		uint64_t ms;
	} row[] = { { 0, 1 },	  { 8, 1 },	{ 9, 2 },      { 16, 256 },	{ 18, 1024 },
		    { 19, 2048 }, { 20, 4096 }, { 24, 65536 }, { 31, 1u << 23 } };

	ck_assert_uint_eq(cm_encoded_ms(row[_i].t), row[_i].ms);
}

TEST_LOOP(ack_timeout_is_two_life_times_and_the_ack_delay, 0, 15)
{
	static const struct {
		uint8_t ca_ack_delay, life_time, timeout;
	} row[] = {
		{ 0, 18, 19 },	{ 15, 18, 19 }, { 17, 18, 19 }, { 18, 18, 20 }, { 19, 18, 20 },
		{ 20, 18, 21 }, { 21, 18, 21 }, { 22, 18, 22 }, { 0, 16, 17 },	{ 15, 16, 17 },
		{ 16, 16, 18 }, { 17, 16, 18 }, { 31, 0, 31 },	{ 31, 31, 31 }, { 0, 31, 31 },
	};

	ck_assert_uint_eq(cm_ack_timeout(row[_i].ca_ack_delay, row[_i].life_time), row[_i].timeout);
}

TEST(time_does_not_wrap)
{
	struct cm_time late = { UINT64_MAX - 5 };

	ck_assert_uint_eq(cm_time_after(late, 4).ns, UINT64_MAX - 1);
	ck_assert_uint_eq(cm_time_after(late, 6).ns, UINT64_MAX);
}
