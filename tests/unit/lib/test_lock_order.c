/* SPDX-License-Identifier: BSD-2-Clause */
/* Unit tests of lib/diag/lock_order.c: a thread is caught that takes locks in the wrong order. */
#include "lib/diag/lock_order.h"

#include <signal.h>

#include "tests/unit/test.h"

static pthread_mutex_t engine = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t channel = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t other_channel = PTHREAD_MUTEX_INITIALIZER;

TEST(locks_may_be_given_back_in_any_order)
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

TEST_SIGNAL(what_was_not_taken_is_not_given_back, SIGABRT)
{
	lock_give(&engine, LOCK_ENGINE);
}
