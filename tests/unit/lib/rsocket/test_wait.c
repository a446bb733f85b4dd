/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What sleeping threads are woken with, where the steps of two threads may fall together.
 */
#include <check.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "lib/rsocket/wait.h"

static void *second_step(void *arg)
{
	struct waker *waker = arg;
	uint64_t one = 1;

	usleep(20000);
	ck_assert_int_eq(write(waker->fd, &one, sizeof(one)), sizeof(one));
	return NULL;
}

/* Else whoever sleeps with it next never does again: a loop without an end. */
START_TEST(a_waker_that_is_just_being_set_is_not_left_readable)
{
	struct waker *waker = waker_new();
	struct pollfd poll_fd = { .fd = waker->fd, .events = POLLIN };
	pthread_t thread;

	waker->is_set = 1;
	pthread_create(&thread, NULL, second_step, waker);
	waker_reset(waker);
	pthread_join(thread, NULL);
	ck_assert_int_eq(poll(&poll_fd, 1, 0), 0);
	waker_free(waker);
}
END_TEST

START_TEST(no_time_left_is_over_and_for_ever_is_not)
{
	struct wait_until none = wait_for_ms(0), forever = wait_for_ms(-1);

	ck_assert(wait_is_over(&none) && wait_left_ms(&none) == 0);
	ck_assert(!wait_is_over(&forever) && wait_left_ms(&forever) > 0);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("wait");
	TCase *tcase = tcase_create("wait");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_test(tcase, a_waker_that_is_just_being_set_is_not_left_readable);
	tcase_add_test(tcase, no_time_left_is_over_and_for_ever_is_not);
	suite_add_tcase(suite, tcase);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
