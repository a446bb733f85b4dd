/* SPDX-License-Identifier: BSD-2-Clause */
/* base/loop.c: which watches are called, and which no longer. */
#include "base/loop.h"

#include <errno.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "tests/unit/test.h"

struct counter {
	struct watch watch; /* first */
	unsigned int n_calls;
	uint32_t events;
	struct watch *victim; /* removed by the call */
};

static struct loop loop;
static struct counter one, other;
static int one_fd, other_fd;

static void count(struct watch *watch)
{
	struct counter *counter = (struct counter *)watch;

	counter->n_calls++;
	counter->events = watch->came;
	if (counter->victim)
		loop_unwatch(&loop, counter->victim);
}

static void set_up(void)
{
	one = other = (struct counter){ .n_calls = 0 };
	one_fd = eventfd(1, EFD_CLOEXEC | EFD_NONBLOCK);
	other_fd = eventfd(1, EFD_CLOEXEC | EFD_NONBLOCK);
	ck_assert_int_eq(loop_init(&loop), 0);
	ck_assert_int_eq(loop_watch(&loop, &one.watch, one_fd, EPOLLIN, count), 0);
}

static void tear_down(void)
{
	loop_fini(&loop);
	close(one_fd);
	close(other_fd);
}

FIXTURE(set_up, tear_down);

TEST(watch_of_a_ready_descriptor_is_called)
{
	ck_assert_int_eq(loop_turn(&loop, 0), 1);
	ck_assert_uint_eq(one.n_calls, 1);
	ck_assert_uint_eq(one.events, EPOLLIN);
}

TEST(turn_without_events_ends_at_its_timeout)
{
	eventfd_t value;

	ck_assert_int_eq(eventfd_read(one_fd, &value), 0);
	ck_assert_int_eq(loop_turn(&loop, 1), 0);
	ck_assert_uint_eq(one.n_calls, 0);
}

TEST(a_paused_watch_is_not_called_until_it_is_resumed)
{
	ck_assert_int_eq(loop_change(&loop, &one.watch, 0), 0);
	ck_assert_int_eq(loop_turn(&loop, 0), 0);
	ck_assert_int_eq(loop_change(&loop, &one.watch, EPOLLIN), 0);
	ck_assert_int_eq(loop_turn(&loop, 0), 1);
	ck_assert_uint_eq(one.n_calls, 1);
}

TEST(a_paused_watch_is_not_called_for_a_hang_up)
{
	int pipe_fd[2];

	ck_assert_int_eq(pipe(pipe_fd), 0);
	ck_assert_int_eq(loop_watch(&loop, &other.watch, pipe_fd[0], EPOLLIN, count), 0);
	ck_assert_int_eq(loop_change(&loop, &other.watch, 0), 0);
	close(pipe_fd[1]);
	loop_turn(&loop, 0);
	ck_assert_uint_eq(other.n_calls, 0);
	close(pipe_fd[0]);
}

TEST(events_of_a_watch_can_be_changed)
{
	ck_assert_int_eq(loop_change(&loop, &one.watch, EPOLLIN | EPOLLOUT), 0);
	ck_assert_int_eq(loop_turn(&loop, 0), 1);
	ck_assert_uint_eq(one.events, EPOLLIN | EPOLLOUT);
}

TEST(a_watch_removed_in_the_same_turn_is_not_called)
{
	ck_assert_int_eq(loop_watch(&loop, &other.watch, other_fd, EPOLLIN, count), 0);
	one.victim = &other.watch;
	other.victim = &one.watch;
	ck_assert_int_eq(loop_turn(&loop, 0), 2);
	ck_assert_uint_eq(one.n_calls + other.n_calls, 1);
}

TEST(a_watch_may_remove_itself)
{
	one.victim = &one.watch;
	ck_assert_int_eq(loop_turn(&loop, 0), 1);
	ck_assert_int_eq(loop_turn(&loop, 0), 0);
	ck_assert_int_eq(one.watch.fd, -1);
}

TEST(removing_a_watch_twice_is_harmless)
{
	loop_unwatch(&loop, &one.watch);
	loop_unwatch(&loop, &one.watch);
	ck_assert_int_eq(loop_turn(&loop, 0), 0);
}

TEST(a_negative_descriptor_is_refused)
{
	ck_assert_int_eq(loop_watch(&loop, &other.watch, -1, EPOLLIN, count), -EBADF);
	ck_assert_int_eq(loop_watch(&loop, &other.watch, 1 << 20, EPOLLIN, count), -EBADF);
	ck_assert_int_eq(other.watch.fd, -1);
}
