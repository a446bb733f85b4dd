/* SPDX-License-Identifier: BSD-2-Clause */
/* Unit tests of lib/diag/lock_order.c: a thread is caught that takes locks in the wrong order. */
#include "lib/diag/lock_order.h"

#include <check.h>
#include <signal.h>

#include "tests/unit/cm/run.h"

static pthread_mutex_t engine = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t channel = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t other_channel = PTHREAD_MUTEX_INITIALIZER;

START_TEST(locks_may_be_given_back_in_any_order)
{
	lock_take(&engine, LOCK_ENGINE);
	lock_take(&channel, LOCK_CHANNEL);
	lock_give(&engine, LOCK_ENGINE);
	lock_give(&channel, LOCK_CHANNEL);
	lock_take(&engine, LOCK_ENGINE);
	ck_assert_int_ne(pthread_mutex_trylock(&engine), 0);
}
END_TEST

START_TEST(engine_is_not_taken_inside_a_channel)
{
	lock_take(&channel, LOCK_CHANNEL);
	lock_take(&engine, LOCK_ENGINE);
}
END_TEST

START_TEST(two_channels_are_not_held_at_once)
{
	lock_take(&channel, LOCK_CHANNEL);
	lock_take(&other_channel, LOCK_CHANNEL);
}
END_TEST

START_TEST(what_was_not_taken_is_not_given_back)
{
	lock_give(&engine, LOCK_ENGINE);
}
END_TEST

static Suite *lock_order_suite(void)
{
	Suite *suite = suite_create("lock_order");
	TCase *tc = tcase_create("order");

	tcase_add_test(tc, locks_may_be_given_back_in_any_order);
	tcase_add_test_raise_signal(tc, engine_is_not_taken_inside_a_channel, SIGABRT);
	tcase_add_test_raise_signal(tc, two_channels_are_not_held_at_once, SIGABRT);
	tcase_add_test_raise_signal(tc, what_was_not_taken_is_not_given_back, SIGABRT);
	suite_add_tcase(suite, tc);
	return suite;
}

int main(void)
{
	return run_suite(lock_order_suite());
}
