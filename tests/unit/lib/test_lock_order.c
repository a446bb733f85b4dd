/* SPDX-License-Identifier: BSD-2-Clause */
/* Unit tests of lib/diag/lock_order.c: locks taken in the wrong order are detected. */
#include "lib/diag/lock_order.h"

#include <signal.h>

#include "base/command.h"
#include "tests/unit/test.h"

static pthread_mutex_t engine = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t channel = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t other_channel = PTHREAD_MUTEX_INITIALIZER;

TEST(locks_may_be_released_in_any_order)
{
	lock_take(&engine, LOCK_ENGINE);
	lock_take(&channel, LOCK_CHANNEL);
	lock_give(&engine, LOCK_ENGINE);
	lock_give(&channel, LOCK_CHANNEL);
	lock_take(&engine, LOCK_ENGINE);
	ck_assert_int_ne(pthread_mutex_trylock(&engine), 0);
}

TEST_SIGNAL(engine_is_not_taken_inside_a_channel, SIGABRT)
{
	lock_take(&channel, LOCK_CHANNEL);
	lock_take(&engine, LOCK_ENGINE);
}

TEST_SIGNAL(two_channels_are_not_held_at_once, SIGABRT)
{
	lock_take(&channel, LOCK_CHANNEL);
	lock_take(&other_channel, LOCK_CHANNEL);
}

TEST_SIGNAL(lock_that_is_not_held_cannot_be_released, SIGABRT)
{
	lock_give(&engine, LOCK_ENGINE);
}

TEST(commands_of_a_device_are_permitted_under_the_locks_before_the_engines)
{
	lock_take(&channel, LOCK_HOST);
	command_check();
	lock_take(&engine, LOCK_ENGINE);
	ck_assert(!command_is_permitted());
	lock_give(&engine, LOCK_ENGINE);
	command_check();
}

TEST_LOOP(commands_of_a_device_are_not_permitted_under_later_ones, LOCK_ENGINE, LOCK_ID + 1)
{
	lock_take(&engine, (enum lock_rank)_i);
	ck_assert(!command_is_permitted());
	lock_give(&engine, (enum lock_rank)_i);
	ck_assert(command_is_permitted());
}

TEST_SIGNAL(command_under_the_engines_lock_aborts, SIGABRT)
{
	lock_take(&engine, LOCK_ENGINE);
	command_check();
}

TEST(forked_child_holds_no_lock)
{
	lock_take(&engine, LOCK_ENGINE);
	lock_after_fork();
	command_check();
}
