/* SPDX-License-Identifier: BSD-2-Clause */
/* mad/sa/flight.c: retransmission, responses and timeouts, in virtual time. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/sa/wire.h"
#include "tests/unit/test.h"

#define MANY (SA_FLIGHTS_OUT_MAX + 10)

static struct sa_flights flights;
static struct sa_flight flight[MANY];
static int n_landed, last_err;
static uint16_t last_dlid;

static void landed(struct sa_flight *which, int err, const struct sa_msg *answer)
{
	ck_assert(!sa_flight_is_on(which));
	n_landed++;
	last_err = err;
	last_dlid = answer ? answer->path.dlid : 0;
}

static void begin(void)
{
	wire_clear();
	memset(flight, 0, sizeof(flight));
	n_landed = 0;
	sa_flights_init(&flights, 5, wire_send, NULL);
}

static void start(int i, unsigned int timeout_ms)
{
	sa_msg_init(&flight[i].msg, SA_METHOD_GET, SA_ATTR_PATH_RECORD, SA_PATH_DGID, 0);
	flight[i].landed = landed;
	sa_flight_start(&flights, &flight[i], timeout_ms, at_ms(0));
}

static void expire(uint64_t ms)
{
	do
		sa_flights_expire(&flights, at_ms(ms));
	while (cm_time_reached(cm_timers_deadline(&flights.timers), at_ms(ms)));
}

static void input(const uint8_t mad[MAD_BYTES])
{
	sa_flights_input(&flights, mad, MAD_BYTES, at_ms(1));
}

START_TEST(request_is_sent_at_once)
{
	start(0, 2000);
	ck_assert_uint_eq(n_sent, 1);
	ck_assert_uint_eq(sent[0].msg.hdr.method, SA_METHOD_GET);
	ck_assert_uint_ge(sent[0].wait_ms, 2000);
}
END_TEST

START_TEST(response_ends_the_request)
{
	uint8_t mad[MAD_BYTES];

	start(0, 2000);
	wire_answer(0, 0, 17, mad);
	input(mad);
	ck_assert_int_eq(n_landed, 1);
	ck_assert_int_eq(last_err, 0);
	ck_assert_uint_eq(last_dlid, 17);
	ck_assert_uint_eq(cm_timers_deadline(&flights.timers).ns, CM_TIME_NEVER.ns);
}
END_TEST

START_TEST(second_response_is_ignored)
{
	uint8_t mad[MAD_BYTES];

	start(0, 2000);
	wire_answer(0, 0, 17, mad);
	input(mad);
	input(mad);
	ck_assert_int_eq(n_landed, 1);
}
END_TEST

START_TEST(retransmission_has_another_transaction_id)
{
	start(0, 2000);
	expire(199);
	ck_assert_uint_eq(n_sent, 1);
	expire(200);
	ck_assert_uint_eq(n_sent, 2);
	ck_assert_uint_ne(sent[0].msg.hdr.tid, sent[1].msg.hdr.tid);
}
END_TEST

START_TEST(late_response_to_the_first_transmission_counts)
{
	uint8_t mad[MAD_BYTES];

	start(0, 2000);
	expire(200);
	wire_answer(0, 0, 9, mad);
	input(mad);
	ck_assert_int_eq(n_landed, 1);
	ck_assert_uint_eq(last_dlid, 9);
}
END_TEST

START_TEST(missing_response_is_a_timeout)
{
	start(0, 2000);
	for (unsigned int ms = 0; ms <= 2000; ms += 50)
		expire(ms);
	ck_assert_uint_eq(n_sent, SA_TRIES);
	ck_assert_int_eq(n_landed, 1);
	ck_assert_int_eq(last_err, -ETIMEDOUT);
}
END_TEST

START_TEST(short_timeout_is_kept)
{
	start(0, 3);
	expire(3);
	ck_assert_int_eq(last_err, -ETIMEDOUT);
	ck_assert_uint_eq(n_sent, 1);
}
END_TEST

START_TEST(refusal_is_einval)
{
	uint8_t mad[MAD_BYTES];

	start(0, 2000);
	wire_answer(0, 0x0300, 0, mad);
	input(mad);
	ck_assert_int_eq(last_err, -EINVAL);
}
END_TEST

START_TEST(request_is_repeated_after_busy)
{
	uint8_t mad[MAD_BYTES];

	start(0, 2000);
	wire_answer(0, 1, 0, mad);
	input(mad);
	ck_assert_int_eq(n_landed, 0);
	expire(200);
	ck_assert_uint_eq(n_sent, 2);
}
END_TEST

/* When request n was followed by the next, answered by BUSY 1 ms later. */
static uint64_t asked_again_ms(unsigned int n, uint64_t from_ms)
{
	uint8_t mad[MAD_BYTES];
	uint64_t ms;

	wire_answer(n, 1, 0, mad);
	sa_flights_input(&flights, mad, MAD_BYTES, at_ms(from_ms));
	for (ms = from_ms; n_sent == n + 1; ms++)
		expire(ms);
	return ms - from_ms;
}

START_TEST(intervals_after_busy_grow)
{
	uint64_t ms, wait_ms = SA_TRY_MS_MIN, now_ms = 1;
	unsigned int n;

	start(0, 60000);
	for (n = 0; n < 5; n++, wait_ms *= 2) {
		ms = asked_again_ms(n, now_ms);
		now_ms += ms;
		ck_assert_uint_ge(ms, wait_ms * 3 / 4);
		ck_assert_uint_le(ms, wait_ms * 5 / 4 + 1);
	}
}
END_TEST

START_TEST(intervals_after_busy_differ)
{
	uint8_t mad[MAD_BYTES];
	unsigned int i, n_early;

	for (i = 0; i < SA_FLIGHTS_OUT_MAX; i++)
		start((int)i, 60000);
	for (i = 0; i < SA_FLIGHTS_OUT_MAX; i++) {
		wire_answer(i, 1, 0, mad);
		input(mad);
	}
	expire(1 + SA_TRY_MS_MIN);
	n_early = n_sent - SA_FLIGHTS_OUT_MAX;
	ck_assert_uint_ge(n_early, SA_FLIGHTS_OUT_MAX / 4);
	ck_assert_uint_le(n_early, SA_FLIGHTS_OUT_MAX * 3 / 4);
}
END_TEST

START_TEST(late_busy_of_an_earlier_transmission_changes_nothing)
{
	uint8_t mad[MAD_BYTES];

	start(0, 2000);
	expire(200);
	wire_answer(0, 1, 0, mad);
	sa_flights_input(&flights, mad, MAD_BYTES, at_ms(201));
	expire(399);
	ck_assert_uint_eq(n_sent, 2);
}
END_TEST

START_TEST(answer_of_another_attribute_is_a_stray)
{
	uint8_t mad[MAD_BYTES];

	start(0, 2000);
	wire_answer(0, 0, 0, mad);
	mad[17] = SA_ATTR_MCMEMBER_RECORD;
	input(mad);
	ck_assert_int_eq(n_landed, 0);
}
END_TEST

START_TEST(request_of_a_peer_is_a_stray)
{
	uint8_t mad[MAD_BYTES];

	start(0, 2000);
	wire_answer(0, 0, 0, mad);
	mad[3] = SA_METHOD_GET;
	input(mad);
	ck_assert_int_eq(n_landed, 0);
}
END_TEST

START_TEST(truncated_response_is_a_stray)
{
	uint8_t mad[MAD_BYTES];

	start(0, 2000);
	wire_answer(0, 0, 0, mad);
	sa_flights_input(&flights, mad, 100, at_ms(1));
	ck_assert_int_eq(n_landed, 0);
}
END_TEST

START_TEST(outstanding_requests_are_limited)
{
	uint8_t mad[MAD_BYTES];

	for (int i = 0; i < MANY; i++)
		start(i, 2000);
	ck_assert_uint_eq(n_sent, SA_FLIGHTS_OUT_MAX);
	wire_answer(3, 0, 1, mad);
	input(mad);
	ck_assert_uint_eq(n_sent, SA_FLIGHTS_OUT_MAX + 1);
}
END_TEST

static void answer(int i)
{
	uint8_t mad[MAD_BYTES];

	wire_answer(i, 0, 1, mad);
	input(mad);
}

/* The first ones get no response: they keep their places until they time out. */
START_TEST(requests_of_one_turn_leave_places_to_others)
{
	for (int i = 0; i < MANY; i++) {
		flight[i].turn = 1 + (i == MANY - 1);
		start(i, 600000);
	}
	ck_assert_uint_eq(n_sent, SA_TURN_OUT_MAX + 1);
	ck_assert(flight[MANY - 1].is_out);
}
END_TEST

START_TEST(turns_alternate)
{
	for (int i = 0; i < MANY; i++) {
		flight[i].turn = i < MANY - 1 ? 0 : 2;
		start(i, 2000);
	}
	ck_assert(!flight[MANY - 1].is_out);
	answer(0);
	answer(1);
	ck_assert(flight[MANY - 1].is_out);
}
END_TEST

START_TEST(waiting_request_may_change_its_turn)
{
	for (int i = 0; i < MANY; i++) {
		flight[i].turn = 1;
		start(i, 2000);
	}
	ck_assert(!flight[MANY - 1].is_out);
	sa_flight_turn(&flights, &flight[MANY - 1], 2, at_ms(0));
	ck_assert(flight[MANY - 1].is_out);
	sa_flight_turn(&flights, &flight[0], 2, at_ms(0));
	for (int i = 0; i < MANY; i++)
		sa_flight_stop(&flights, &flight[i], at_ms(0));
	ck_assert_uint_eq(flights.n_out + flights.n_waiting, 0);
	ck_assert_uint_eq(flights.turn[1].n_out + flights.turn[2].n_out, 0);
}
END_TEST

/* --- places taken by two turns whose requests get no response --------------- */

#define NEWCOMER (MANY - 1)

/* Return: number of outstanding requests of a turn. */
static unsigned int n_sent_to(uint8_t turn)
{
	return flights.turn[turn].n_out;
}

static void fill_places(void)
{
	for (int i = 0; i < SA_FLIGHTS_OUT_MAX; i++) {
		flight[i].turn = i < SA_TURN_OUT_MAX ? 1 : 2;
		start(i, 600000);
	}
	ck_assert_uint_eq(flights.n_out, SA_FLIGHTS_OUT_MAX);
}

static void start_newcomer(uint8_t turn)
{
	flight[NEWCOMER].turn = turn;
	start(NEWCOMER, 600000);
}

START_TEST(oldest_request_of_the_largest_turn_gives_way)
{
	fill_places();
	start_newcomer(3);
	ck_assert(!flight[NEWCOMER].is_out);
	ck_assert_uint_le(sa_flights_deadline(&flights).ns, at_ms(SA_GIVE_WAY_MS).ns);
	sa_flights_expire(&flights, at_ms(SA_GIVE_WAY_MS));
	ck_assert(flight[NEWCOMER].is_out);
	ck_assert(!flight[0].is_out);
	ck_assert_uint_eq(n_sent_to(2), SA_FLIGHTS_OUT_MAX - SA_TURN_OUT_MAX);
	ck_assert_uint_eq(flights.n_out, SA_FLIGHTS_OUT_MAX);
	ck_assert_int_eq(n_landed, 0);
}
END_TEST

/* Requests of the turn with fewer stay, although they are older. */
START_TEST(older_request_of_a_smaller_turn_stays)
{
	const int n = SA_FLIGHTS_OUT_MAX - SA_TURN_OUT_MAX;

	for (int i = 0; i < SA_FLIGHTS_OUT_MAX; i++) {
		flight[i].turn = i < n ? 2 : 1;
		start(i, 600000);
	}
	start_newcomer(3);
	sa_flights_expire(&flights, at_ms(SA_GIVE_WAY_MS));
	ck_assert(flight[0].is_out);
	ck_assert(!flight[n].is_out);
	ck_assert(flight[NEWCOMER].is_out);
	ck_assert_uint_eq(n_sent, SA_FLIGHTS_OUT_MAX + 1);
}
END_TEST

START_TEST(request_that_gave_way_is_sent_again_and_answered)
{
	fill_places();
	start_newcomer(3);
	sa_flights_expire(&flights, at_ms(SA_GIVE_WAY_MS));
	for (int i = 1; i < MANY; i++)
		sa_flight_stop(&flights, &flight[i], at_ms(SA_GIVE_WAY_MS));
	ck_assert(flight[0].is_out);
	answer((int)n_sent - 1);
	ck_assert_int_eq(n_landed, 1);
	ck_assert(!sa_flight_is_on(&flight[0]));
}
END_TEST

START_TEST(waiting_turn_gets_only_its_fair_share)
{
	const unsigned int share = SA_FLIGHTS_OUT_MAX / 3;
	static struct sa_flight more[SA_FLIGHTS_OUT_MAX];
	unsigned int i;

	fill_places();
	memset(more, 0, sizeof(more));
	for (i = 0; i < SA_FLIGHTS_OUT_MAX; i++) {
		sa_msg_init(&more[i].msg, SA_METHOD_GET, SA_ATTR_PATH_RECORD, SA_PATH_DGID, 0);
		more[i].landed = landed;
		more[i].turn = 3;
		sa_flight_start(&flights, &more[i], 600000, at_ms(0));
	}
	for (i = 1; i < 10; i++)
		sa_flights_expire(&flights, at_ms(i * SA_GIVE_WAY_MS));
	ck_assert_uint_ge(n_sent_to(1), share);
	ck_assert_uint_eq(n_sent_to(2), SA_FLIGHTS_OUT_MAX - SA_TURN_OUT_MAX);
	ck_assert_uint_eq(n_sent_to(3), share);
}
END_TEST

START_TEST(resting_request_ends_when_it_gives_way)
{
	fill_places();
	sa_flight_rest(&flights, &flight[0], at_ms(0));
	start_newcomer(3);
	sa_flights_expire(&flights, at_ms(SA_GIVE_WAY_MS));
	ck_assert(flight[NEWCOMER].is_out);
	ck_assert_int_eq(n_landed, 1);
	ck_assert_int_eq(last_err, -ETIMEDOUT);
	ck_assert(!sa_flight_is_on(&flight[0]));
}
END_TEST

START_TEST(nothing_gives_way_to_another_of_the_same_turn)
{
	fill_places();
	start_newcomer(1);
	sa_flights_expire(&flights, at_ms(10 * SA_GIVE_WAY_MS));
	ck_assert(flight[0].is_out);
	ck_assert(!flight[NEWCOMER].is_out);
}
END_TEST

/* --- requests without a client -------------------------------------------- */

static void put_to_rest(int i)
{
	ck_assert(sa_flight_rest(&flights, &flight[i], at_ms(1)));
}

START_TEST(resting_request_is_not_retransmitted_and_keeps_its_place)
{
	start(0, 2000);
	put_to_rest(0);
	expire(1000);
	sa_flights_again(&flights, at_ms(1000));
	ck_assert_uint_eq(n_sent, 1);
	ck_assert_uint_eq(flights.n_out, 1);
	expire(2001);
	ck_assert_int_eq(n_landed, 1);
	ck_assert_uint_eq(flights.n_out, 0);
}
END_TEST

START_TEST(resting_request_ends_with_any_response)
{
	uint8_t mad[MAD_BYTES];

	start(0, 2000);
	put_to_rest(0);
	wire_answer(0, _i, 7, mad); /* 1: busy */
	input(mad);
	ck_assert_int_eq(n_landed, 1);
	ck_assert_int_eq(last_err, _i ? -ETIMEDOUT : 0);
	ck_assert_uint_eq(flights.n_out, 0);
}
END_TEST

START_TEST(resting_request_continues_with_a_new_client)
{
	start(0, 2000);
	put_to_rest(0);
	sa_flight_wait(&flights, &flight[0], 4000, at_ms(1000));
	expire(1199);
	ck_assert_uint_eq(n_sent, 1);
	expire(1200);
	ck_assert_uint_eq(n_sent, 2);
	expire(2001);
	ck_assert_int_eq(n_landed, 0);
	expire(5000);
	ck_assert_int_eq(n_landed, 1);
}
END_TEST

START_TEST(unsent_request_does_not_rest)
{
	int i;

	for (i = 0; i <= SA_FLIGHTS_OUT_MAX; i++)
		start(i, 2000);
	ck_assert(!sa_flight_rest(&flights, &flight[SA_FLIGHTS_OUT_MAX], at_ms(1)));
	ck_assert(!sa_flight_is_on(&flight[SA_FLIGHTS_OUT_MAX]));
	ck_assert_uint_eq(flights.n_waiting, 0);
}
END_TEST

START_TEST(waiting_request_times_out)
{
	for (int i = 0; i < MANY; i++)
		start(i, 2000);
	for (unsigned int ms = 0; ms <= 2000; ms += 50)
		expire(ms);
	ck_assert_int_eq(n_landed, MANY);
}
END_TEST

START_TEST(stopped_request_is_not_reported)
{
	start(0, 2000);
	sa_flight_stop(&flights, &flight[0], at_ms(1));
	sa_flight_stop(&flights, &flight[0], at_ms(1));
	expire(5000);
	ck_assert_int_eq(n_landed, 0);
	ck_assert_uint_eq(n_sent, 1);
	ck_assert_uint_eq(flights.n_out, 0);
}
END_TEST

START_TEST(new_administrator_gets_requests_at_once)
{
	start(0, 2000);
	start(1, 2000);
	sa_flights_again(&flights, at_ms(10));
	ck_assert_uint_eq(n_sent, 4);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("flight");
	TCase *tcase = tcase_create("flight");
	SRunner *runner;
	int failed;

	tcase_add_checked_fixture(tcase, begin, NULL);
	tcase_add_test(tcase, request_is_sent_at_once);
	tcase_add_test(tcase, response_ends_the_request);
	tcase_add_test(tcase, second_response_is_ignored);
	tcase_add_test(tcase, retransmission_has_another_transaction_id);
	tcase_add_test(tcase, late_response_to_the_first_transmission_counts);
	tcase_add_test(tcase, missing_response_is_a_timeout);
	tcase_add_test(tcase, short_timeout_is_kept);
	tcase_add_test(tcase, refusal_is_einval);
	tcase_add_test(tcase, request_is_repeated_after_busy);
	tcase_add_test(tcase, intervals_after_busy_grow);
	tcase_add_test(tcase, intervals_after_busy_differ);
	tcase_add_test(tcase, late_busy_of_an_earlier_transmission_changes_nothing);
	tcase_add_test(tcase, answer_of_another_attribute_is_a_stray);
	tcase_add_test(tcase, request_of_a_peer_is_a_stray);
	tcase_add_test(tcase, truncated_response_is_a_stray);
	tcase_add_test(tcase, outstanding_requests_are_limited);
	tcase_add_test(tcase, requests_of_one_turn_leave_places_to_others);
	tcase_add_test(tcase, turns_alternate);
	tcase_add_test(tcase, waiting_request_may_change_its_turn);
	tcase_add_test(tcase, resting_request_is_not_retransmitted_and_keeps_its_place);
	tcase_add_loop_test(tcase, resting_request_ends_with_any_response, 0, 2);
	tcase_add_test(tcase, resting_request_continues_with_a_new_client);
	tcase_add_test(tcase, unsent_request_does_not_rest);
	tcase_add_test(tcase, oldest_request_of_the_largest_turn_gives_way);
	tcase_add_test(tcase, older_request_of_a_smaller_turn_stays);
	tcase_add_test(tcase, request_that_gave_way_is_sent_again_and_answered);
	tcase_add_test(tcase, waiting_turn_gets_only_its_fair_share);
	tcase_add_test(tcase, resting_request_ends_when_it_gives_way);
	tcase_add_test(tcase, nothing_gives_way_to_another_of_the_same_turn);
	tcase_add_test(tcase, waiting_request_times_out);
	tcase_add_test(tcase, stopped_request_is_not_reported);
	tcase_add_test(tcase, new_administrator_gets_requests_at_once);
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
