/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Event channels with waiting threads: destroyed channels, and signals (lib/event/channel.c,
 * lib/event/channel_set.c). Under sanitizers these tests detect uses of freed memory.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include "lib/event/channel.h"
#include "tests/unit/lib/threads.h"
#include "tests/unit/test.h"

#define ROUNDS 200

static struct channel *channel_or_fail(void)
{
	struct channel *channel;

	ck_assert_int_eq(channel_new(&channel), 0);
	return channel;
}

static int get(struct rdma_event_channel *channel)
{
	struct rdma_cm_event *event;

	return rdma_get_cm_event(channel, &event) ? errno : 0;
}

TEST(empty_nonblocking_channel_fails_with_eagain)
{
	struct channel *channel = channel_or_fail();

	fcntl(channel->pub.fd, F_SETFL, O_NONBLOCK);
	ck_assert_int_eq(get(&channel->pub), EAGAIN);
	rdma_destroy_event_channel(&channel->pub);
}

TEST(destroyed_channel_fails_with_ebadf)
{
	struct channel *channel = channel_or_fail();

	rdma_destroy_event_channel(&channel->pub);
	ck_assert_int_eq(get(&channel->pub), EBADF);
}

TEST(pointer_to_no_channel_fails_with_ebadf)
{
	struct rdma_event_channel foreign = { .fd = 0 };

	ck_assert_int_eq(get(&foreign), EBADF);
}

TEST(destroying_twice_closes_no_foreign_descriptor)
{
	struct channel *channel = channel_or_fail();
	int was = channel->pub.fd;
	int fd;

	rdma_destroy_event_channel(&channel->pub);
	fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	ck_assert_int_eq(fd, was);
	rdma_destroy_event_channel(&channel->pub);
	ck_assert_int_ne(fcntl(fd, F_GETFD), -1);
	close(fd);
}

TEST(one_of_many_channels_is_destroyed)
{
	struct channel *channels[ROUNDS];
	int i;

	for (i = 0; i < ROUNDS; i++) {
		channels[i] = channel_or_fail();
		fcntl(channels[i]->pub.fd, F_SETFL, O_NONBLOCK);
	}
	rdma_destroy_event_channel(&channels[ROUNDS / 2]->pub);
	for (i = 0; i < ROUNDS; i++)
		ck_assert_int_eq(get(&channels[i]->pub), i == ROUNDS / 2 ? EBADF : EAGAIN);
	for (i = 0; i < ROUNDS; i++)
		rdma_destroy_event_channel(&channels[i]->pub);
}

static void *get_once(void *channel)
{
	return (void *)(intptr_t)get(channel);
}

TEST(waiting_thread_stays_when_its_channel_is_destroyed)
{
	struct channel *channel = channel_or_fail();
	pthread_t reader;
	void *result;

	pthread_create(&reader, NULL, get_once, &channel->pub);
	threads_wait_asleep();
	rdma_destroy_event_channel(&channel->pub);
	threads_wait_asleep();
	ck_assert_int_eq(pthread_tryjoin_np(reader, &result), EBUSY);
	pthread_cancel(reader);
	pthread_join(reader, &result);
	ck_assert_ptr_eq(result, PTHREAD_CANCELED);
}

/*
 * As rping: its main thread destroys the channel while the other one returns from the last event.
 */
TEST(thread_returning_just_after_the_destruction_waits_too)
{
	struct channel *channel = channel_or_fail();
	struct rdma_event_channel *pub = &channel->pub;
	pthread_t reader;
	void *result;

	rdma_destroy_event_channel(pub);
	pthread_create(&reader, NULL, get_once, pub);
	threads_wait_asleep();
	ck_assert_int_eq(pthread_tryjoin_np(reader, &result), EBUSY);
	pthread_cancel(reader);
	pthread_join(reader, &result);
	ck_assert_ptr_eq(result, PTHREAD_CANCELED);
}

/* Gets events like an event loop, until it gets an error for its channel. */
static void *get_again_and_again(void *channel)
{
	int err;

	do
		err = get(channel);
	while (err == EAGAIN);
	return (void *)(intptr_t)err;
}

TEST(thread_returning_later_gets_ebadf)
{
	struct channel *channel;
	pthread_t reader;
	void *result;
	int i, n;

	for (i = 0; i < ROUNDS; i++) {
		channel = channel_or_fail();
		fcntl(channel->pub.fd, F_SETFL, O_NONBLOCK);
		pthread_create(&reader, NULL, get_again_and_again, &channel->pub);
		for (n = i % 4; n > 0; n--)
			sched_yield();
		rdma_destroy_event_channel(&channel->pub);
		pthread_join(reader, &result);
		ck_assert_int_eq((intptr_t)result, EBADF);
	}
}

/* --- signals ------------------------------------------------------------- */

#define SIGNALS 5

static atomic_int n_handled;

static void handle(int number)
{
	(void)number;
	n_handled++;
}

static void handle_with(int flags)
{
	struct sigaction action = { .sa_handler = handle, .sa_flags = flags };

	sigaction(SIGUSR1, &action, NULL);
	n_handled = 0;
}

/* Several signals, each when the thread sleeps again. */
static void interrupt(pthread_t thread)
{
	void *result;
	int i;

	for (i = 0; i < SIGNALS; i++) {
		pthread_kill(thread, SIGUSR1);
		while (n_handled <= i)
			sched_yield();
		threads_wait_asleep();
		ck_assert_int_eq(pthread_tryjoin_np(thread, &result), EBUSY);
	}
}

enum {
	OPEN,
	CLOSED_LATER,
	CLOSED_BEFORE,
	N_MOMENTS
};

static pthread_t start_reader(struct channel *channel, int moment)
{
	struct rdma_event_channel *pub = &channel->pub;
	pthread_t reader;

	if (moment == CLOSED_BEFORE)
		rdma_destroy_event_channel(pub);
	pthread_create(&reader, NULL, get_once, pub);
	threads_wait_asleep();
	if (moment == CLOSED_LATER)
		rdma_destroy_event_channel(pub);
	return reader;
}

TEST_LOOP(handler_with_sa_restart_does_not_end_the_wait, 0, N_MOMENTS)
{
	struct channel *channel = channel_or_fail();
	pthread_t reader;
	void *result;

	handle_with(SA_RESTART);
	reader = start_reader(channel, _i);
	interrupt(reader);
	pthread_cancel(reader);
	pthread_join(reader, &result);
	ck_assert_ptr_eq(result, PTHREAD_CANCELED);
	if (_i == OPEN)
		rdma_destroy_event_channel(&channel->pub);
}

TEST_LOOP(handler_without_sa_restart_ends_the_wait, 0, N_MOMENTS)
{
	struct channel *channel = channel_or_fail();
	pthread_t reader;
	void *result;

	handle_with(0);
	reader = start_reader(channel, _i);
	while (pthread_tryjoin_np(reader, &result) == EBUSY) {
		pthread_kill(reader, SIGUSR1);
		sched_yield();
	}
	ck_assert_int_eq((intptr_t)result, EINTR);
	if (_i == OPEN)
		rdma_destroy_event_channel(&channel->pub);
}
