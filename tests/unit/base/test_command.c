/* SPDX-License-Identifier: BSD-2-Clause */
/* Unit tests of base/command.c: when a thread may execute a device command. */
#include "base/command.h"

#include <pthread.h>
#include <signal.h>

#include "tests/unit/test.h"

TEST(command_is_permitted_after_the_last_lock)
{
	command_check();
	command_forbid();
	command_forbid();
	command_permit();
	ck_assert(!command_is_permitted());
	command_permit();
	command_check();
}

TEST_SIGNAL(command_under_a_lock_aborts, SIGABRT)
{
	command_forbid();
	command_check();
}

TEST_SIGNAL(lock_that_was_not_taken_is_not_released, SIGABRT)
{
	command_permit();
}

static void *ask(void *permitted)
{
	*(bool *)permitted = command_is_permitted();
	return NULL;
}

TEST(locks_of_another_thread_forbid_no_command)
{
	bool permitted = false;
	pthread_t other;

	command_forbid();
	ck_assert_int_eq(pthread_create(&other, NULL, ask, &permitted), 0);
	pthread_join(other, NULL);
	ck_assert(permitted);
	command_permit();
}

TEST(forked_child_holds_no_lock)
{
	command_forbid();
	command_forbid();
	command_permit_all();
	command_check();
}
