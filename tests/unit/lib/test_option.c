/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Options that only purecm has (lib/option.c). Those of stock are compared with it in tests/parity.
 */
#include <check.h>
#include <errno.h>
#include <purecm/purecm.h>
#include <stdlib.h>

#include "lib/engine.h"

static struct channel *channel;
static struct id *id;

static void setup(void)
{
	ck_assert_int_eq(channel_new(&channel), 0);
	ck_assert_int_eq(id_new(channel, RDMA_PS_TCP, &id), 0);
}

static void teardown(void)
{
	id_free(id);
	channel_close(channel);
}

static int set_waits(uint32_t first_ms, uint32_t last_ms)
{
	struct purecm_retry_waits waits = { first_ms, last_ms };

	return rdma_set_option(&id->pub, PURECM_OPTION, PURECM_OPTION_RETRY_WAITS, &waits,
			       sizeof(waits));
}

START_TEST(waits_are_kept_for_the_next_request)
{
	ck_assert_int_eq(set_waits(50, 400), 0);
	ck_assert_uint_eq(id->option.waits.first_ms, 50);
	ck_assert_uint_eq(id->option.waits.last_ms, 400);
}
END_TEST

START_TEST(zeros_bring_the_default_back)
{
	set_waits(50, 400);
	ck_assert_int_eq(set_waits(0, 0), 0);
	ck_assert_uint_eq(id->option.waits.first_ms, 0);
}
END_TEST

static const struct purecm_retry_waits bad[] = {
	{0,  1},
	  { 1, 0},
	    { 2, 1}
};

START_TEST(waits_that_make_no_sense_are_refused) /* loop test: _i is the row */
{
	set_waits(50, 400);
	ck_assert_int_eq(set_waits(bad[_i].first_ms, bad[_i].last_ms), -1);
	ck_assert_int_eq(errno, EINVAL);
	ck_assert_uint_eq(id->option.waits.first_ms, 50);
}
END_TEST

START_TEST(waits_of_a_request_under_way_stay)
{
	struct cm_conn conn = { 0 };

	id->conn = &conn;
	id->accepted = true;
	ck_assert_int_eq(set_waits(50, 400), -1);
	ck_assert_int_eq(errno, EINVAL);
}
END_TEST

START_TEST(value_of_another_size_is_refused)
{
	uint32_t half = 1;

	ck_assert_int_eq(rdma_set_option(&id->pub, PURECM_OPTION, PURECM_OPTION_RETRY_WAITS, &half,
					 sizeof(half)),
			 -1);
	ck_assert_int_eq(errno, EINVAL);
}
END_TEST

START_TEST(option_that_is_unknown_is_not_there)
{
	uint32_t value = 1;

	ck_assert_int_eq(rdma_set_option(&id->pub, PURECM_OPTION, 77, &value, sizeof(value)), -1);
	ck_assert_int_eq(errno, ENOSYS);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("option");
	TCase *tc = tcase_create("option");
	SRunner *runner = srunner_create(suite);
	int failed;

	suite_add_tcase(suite, tc);
	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, waits_are_kept_for_the_next_request);
	tcase_add_test(tc, zeros_bring_the_default_back);
	tcase_add_loop_test(tc, waits_that_make_no_sense_are_refused, 0,
			    sizeof(bad) / sizeof(bad[0]));
	tcase_add_test(tc, waits_of_a_request_under_way_stay);
	tcase_add_test(tc, value_of_another_size_is_refused);
	tcase_add_test(tc, option_that_is_unknown_is_not_there);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
