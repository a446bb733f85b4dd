/* SPDX-License-Identifier: BSD-2-Clause */
/* repoll over a device in memory: triggers, other descriptors, closed sockets. */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <rdma/rsocket.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "lib/rsocket/repoll.h"
#include "tests/unit/lib/rsocket/pair.h"
#include "tests/unit/lib/rsocket/wire_device.h"
#include "tests/unit/test.h"

static struct pair pair;
static int repoll;

static void set_up(void)
{
	wire_begin();
	pair = pair_make(pair_small());
	repoll = repoll_create(O_CLOEXEC);
	ck_assert_int_ge(repoll, 0);
}

static void tear_down(void)
{
	ck_assert_int_eq(rclose(repoll), 0);
	pair_free(&pair);
	wire_end();
}

FIXTURE(set_up, tear_down);
static void add(int fd, uint32_t events)
{
	struct epoll_event event = { .events = events, .data.fd = fd };

	ck_assert_int_eq(repoll_ctl(repoll, EPOLL_CTL_ADD, fd, &event), 0);
}

/* Expects these events, of one descriptor or none, at once. */
static void expect(int fd, uint32_t events)
{
	struct epoll_event got[4];
	int n = repoll_wait(repoll, got, 4, 0);

	ck_assert_int_eq(n, events ? 1 : 0);
	if (!n)
		return;
	ck_assert_int_eq(got[0].data.fd, fd);
	ck_assert_uint_eq(got[0].events, events);
}

static void send_one(void)
{
	ck_assert_int_eq(rsend(pair.fd[0], "x", 1, 0), 1);
}

static void read_one(void)
{
	ck_assert_int_eq(rrecv(pair.fd[1], &(char){ 0 }, 1, 0), 1);
}

TEST(level_triggered_is_reported_until_it_is_read)
{
	add(pair.fd[1], EPOLLIN);
	expect(pair.fd[1], 0);
	send_one();
	expect(pair.fd[1], EPOLLIN);
	expect(pair.fd[1], EPOLLIN);
	read_one();
	expect(pair.fd[1], 0);
}
END_TEST

TEST(the_end_is_reported_with_unread_data)
{
	add(pair.fd[1], EPOLLIN | EPOLLRDHUP | EPOLLET);
	send_one();
	ck_assert_int_eq(rshutdown(pair.fd[0], SHUT_RDWR), 0);
	expect(pair.fd[1], EPOLLIN | EPOLLRDHUP);
}
END_TEST

static int rpoll_once(void)
{
	struct pollfd outer = { .fd = repoll, .events = POLLIN };

	return rpoll(&outer, 1, 0);
}

int __real_epoll_ctl(int epfd, int op, int fd, struct epoll_event *event);
int __wrap_epoll_ctl(int epfd, int op, int fd, struct epoll_event *event);

static bool epoll_is_full;

/* The user has no more watches: /proc/sys/fs/epoll/max_user_watches. */
int __wrap_epoll_ctl(int epfd, int op, int fd, struct epoll_event *event)
{
	if (!epoll_is_full || op != EPOLL_CTL_ADD)
		return __real_epoll_ctl(epfd, op, fd, event);
	errno = ENOSPC;
	return -1;
}

TEST(socket_that_the_kernel_cannot_watch_is_looked_at_by_each_wait)
{
	add(pair.fd[1], EPOLLIN);
	epoll_is_full = true;
	expect(pair.fd[1], 0);
	expect(pair.fd[1], 0);
	send_one();
	expect(pair.fd[1], EPOLLIN);
	read_one();
	epoll_is_full = false;
	expect(pair.fd[1], 0);
	send_one();
	expect(pair.fd[1], EPOLLIN);
}
END_TEST

/* It is polled like an epoll descriptor in poll(). */
TEST(instance_is_readable_until_all_is_read)
{
	add(pair.fd[1], EPOLLIN);
	send_one();
	for (int i = 0; i < 3; i++) {
		expect(pair.fd[1], EPOLLIN);
		ck_assert_int_eq(rpoll_once(), 1);
	}
	read_one();
	expect(pair.fd[1], 0);
	ck_assert_int_eq(rpoll_once(), 0);
	send_one();
	ck_assert_int_eq(rpoll_once(), 1);
	expect(pair.fd[1], EPOLLIN);
}
END_TEST

TEST(edge_triggered_is_reported_for_each_arrival)
{
	add(pair.fd[1], EPOLLIN | EPOLLET);
	send_one();
	expect(pair.fd[1], EPOLLIN);
	expect(pair.fd[1], 0);
	send_one();
	expect(pair.fd[1], EPOLLIN);
	expect(pair.fd[1], 0);
}
END_TEST

TEST(one_shot_is_reported_once_until_rearmed)
{
	struct epoll_event again = { .events = EPOLLIN | EPOLLONESHOT, .data.fd = pair.fd[1] };

	add(pair.fd[1], EPOLLIN | EPOLLONESHOT);
	send_one();
	expect(pair.fd[1], EPOLLIN);
	send_one();
	expect(pair.fd[1], 0);
	ck_assert_int_eq(repoll_ctl(repoll, EPOLL_CTL_MOD, pair.fd[1], &again), 0);
	expect(pair.fd[1], EPOLLIN);
}
END_TEST

TEST(other_descriptor_is_reported_too)
{
	int fd = eventfd(1, EFD_CLOEXEC);

	add(fd, EPOLLIN);
	expect(fd, EPOLLIN);
	ck_assert_int_eq(repoll_ctl(repoll, EPOLL_CTL_DEL, fd, NULL), 0);
	expect(fd, 0);
	close(fd);
}
END_TEST

TEST(a_descriptor_that_is_always_ready_does_not_hide_a_socket)
{
	int fd = eventfd(1, EFD_CLOEXEC);
	struct epoll_event event;
	int n_socket = 0;

	add(pair.fd[1], EPOLLIN);
	send_one();
	expect(pair.fd[1], EPOLLIN);
	add(fd, EPOLLIN);
	for (int i = 0; i < 10; i++) {
		ck_assert_int_eq(repoll_wait(repoll, &event, 1, 0), 1);
		n_socket += event.data.fd == pair.fd[1];
	}
	ck_assert_int_eq(n_socket, 5);
	ck_assert_int_eq(repoll_ctl(repoll, EPOLL_CTL_DEL, fd, NULL), 0);
	close(fd);
}
END_TEST

/* The kernel drops a closed descriptor without a call of the program: see epoll(7). */
TEST(the_number_of_a_closed_descriptor_can_be_added_again)
{
	struct epoll_event event = { .events = EPOLLIN };
	int fd = eventfd(1, EFD_CLOEXEC);

	add(fd, EPOLLOUT);
	close(fd);
	ck_assert_int_eq(eventfd(1, EFD_CLOEXEC), fd);
	add(fd, EPOLLIN);
	expect(fd, EPOLLIN);
	ck_assert_int_eq(repoll_ctl(repoll, EPOLL_CTL_ADD, fd, &event), EEXIST);
	expect(fd, EPOLLIN);
	ck_assert_int_eq(repoll_ctl(repoll, EPOLL_CTL_DEL, fd, NULL), 0);
	close(fd);
}
END_TEST

/* A socket can have the number, too. */
TEST(a_socket_with_the_number_of_a_closed_descriptor_can_be_added)
{
	int fd = eventfd(1, EFD_CLOEXEC);
	struct pair later;

	add(fd, EPOLLIN);
	close(fd);
	later = pair_make(pair_small());
	ck_assert_int_eq(later.fd[0] == fd || later.fd[1] == fd, 1);
	add(fd, EPOLLOUT);
	expect(fd, EPOLLOUT);
	pair_free(&later);
}
END_TEST

TEST(errors_are_positive)
{
	struct epoll_event event = { .events = EPOLLIN };

	add(pair.fd[0], EPOLLIN);
	ck_assert_int_eq(repoll_ctl(repoll, EPOLL_CTL_ADD, pair.fd[0], &event), EEXIST);
	ck_assert_int_eq(repoll_ctl(repoll, EPOLL_CTL_MOD, pair.fd[1], &event), ENOENT);
	ck_assert_int_eq(repoll_ctl(repoll, 99, pair.fd[0], &event), EINVAL);
	ck_assert_int_eq(repoll_ctl(-1, EPOLL_CTL_ADD, pair.fd[0], &event), EBADF);
	ck_assert_int_eq(repoll_wait(repoll, &event, 0, 0), EINVAL);
}
END_TEST

TEST(a_closed_socket_leaves_by_itself)
{
	struct epoll_event event = { .events = EPOLLIN };

	add(pair.fd[1], EPOLLIN);
	pair_free(&pair);
	expect(-1, 0);
	ck_assert_int_eq(repoll_ctl(repoll, EPOLL_CTL_DEL, pair.fd[1], &event), ENOENT);
	pair = pair_make(pair_small());
}
END_TEST

/* Its completion channel stays open during the call; its events must not be used. */
TEST(socket_closed_during_a_call_leaves_at_once)
{
	struct epoll_event event = { .events = EPOLLIN };

	add(pair.fd[1], EPOLLIN);
	expect(pair.fd[1], 0);
	ck_assert_ptr_nonnull(table_get(pair.fd[1]));
	ck_assert_int_eq(rclose(pair.fd[1]), 0);
	ck_assert_int_eq(repoll_ctl(repoll, EPOLL_CTL_DEL, pair.fd[1], &event), ENOENT);
	expect(-1, 0);
}
END_TEST

/*
 * As in epoll(7): while a duplicate is open, a descriptor that was closed without being removed
 * stays in the set. Its item must not.
 */
TEST(event_of_a_removed_item_is_ignored)
{
	int fd = eventfd(0, EFD_CLOEXEC), other = dup(fd);

	add(fd, EPOLLIN);
	close(fd);
	ck_assert_int_eq(repoll_ctl(repoll, EPOLL_CTL_DEL, fd, NULL), 0);
	ck_assert_int_eq(eventfd_write(other, 1), 0);
	expect(-1, 0);
	close(other);
}
END_TEST

TEST(change_that_the_kernel_refuses_changes_nothing)
{
	struct epoll_event event = { .events = EPOLLIN | EPOLLEXCLUSIVE, .data.fd = -1 };
	int fd = eventfd(1, EFD_CLOEXEC);

	add(fd, EPOLLIN);
	ck_assert_int_eq(repoll_ctl(repoll, EPOLL_CTL_MOD, fd, &event), EINVAL);
	expect(fd, EPOLLIN);
	close(fd);
}
END_TEST

/* --- many sockets -------------------------------------------------------- */

#define N_PAIRS	  1000
#define N_READY	  10
#define N_WAITS	  200
#define N_TRIES	  5
#define N_FDS	  (6 * N_PAIRS + 100)
#define TIMES_MAX 8 /* with a hundred times as many sockets, which must not be checked */

/* Return: the minimum CPU time in seconds of N_WAITS waits that report N_READY sockets. */
static double cost_s(void)
{
	struct epoll_event events[2 * N_READY];
	double least = 1e9;

	for (int try = 0; try < N_TRIES; try++) {
		clock_t begin = clock();

		for (int i = 0; i < N_WAITS; i++)
			ck_assert_int_eq(repoll_wait(repoll, events, 2 * N_READY, 0), N_READY);
		least = fmin(least, (double)(clock() - begin) / CLOCKS_PER_SEC);
	}
	return least;
}

TEST(cost_of_a_wait_depends_on_ready_sockets_only)
{
	struct rlimit limit;
	static struct pair many[N_PAIRS];
	double few_s;

	ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
	ck_assert_uint_ge(limit.rlim_max, N_FDS);
	limit.rlim_cur = limit.rlim_max;
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
	for (int i = 0; i < N_PAIRS; i++) {
		many[i] = pair_make(pair_small());
		add(many[i].fd[0], EPOLLIN);
		add(many[i].fd[1], EPOLLIN);
		if (i < N_READY)
			ck_assert_int_eq(rsend(many[i].fd[0], "x", 1, 0), 1);
		if (i == N_READY)
			few_s = cost_s();
	}
	printf("repoll_wait() of %d ready ones: among %d sockets %.1f us, among %d %.1f us\n",
	       N_READY, 2 * N_READY + 2, few_s * 1e6 / N_WAITS, 2 * N_PAIRS,
	       cost_s() * 1e6 / N_WAITS);
	ck_assert_double_lt(cost_s(), TIMES_MAX * few_s);
	for (int i = 0; i < N_PAIRS; i++)
		pair_free(&many[i]);
}
END_TEST

/* Returns when so many threads sleep in repoll_wait(). */
static void await_sleepers(unsigned int n)
{
	struct rsock *rs = table_get(repoll);
	unsigned int n_sleeping = 0;

	while (n_sleeping < n) {
		sched_yield();
		pthread_mutex_lock(&rs->lock);
		n_sleeping = ((struct repoll *)rs)->n_sleeping;
		pthread_mutex_unlock(&rs->lock);
	}
	rsock_put(rs);
}

static void *send_to_sleeper(void *arg)
{
	await_sleepers(1);
	send_one();
	return arg;
}

TEST(an_arrival_ends_the_wait_of_another_thread)
{
	struct epoll_event event;
	pthread_t thread;

	add(pair.fd[1], EPOLLIN);
	pthread_create(&thread, NULL, send_to_sleeper, NULL);
	ck_assert_int_eq(repoll_wait(repoll, &event, 1, -1), 1);
	pthread_join(thread, NULL);
}
END_TEST

/*
 * One wakeup is for both sockets: the thread that took it reported one, and may serve it for long.
 */
TEST(events_without_room_wake_another_thread)
{
	struct pollfd other = { .fd = repoll, .events = POLLIN };
	struct rsock *rs = table_get(repoll);
	struct epoll_event event;

	((struct repoll *)rs)->n_sleeping++;
	add(pair.fd[0], EPOLLOUT);
	add(pair.fd[1], EPOLLOUT);
	ck_assert_int_eq(repoll_wait(repoll, &event, 1, 0), 1);
	ck_assert_int_eq(poll(&other, 1, 0), 1);
	((struct repoll *)rs)->n_sleeping--;
	rsock_put(rs);
}
END_TEST

static void *wait_for_ever(void *arg)
{
	struct epoll_event event;

	ck_assert_int_eq(repoll_wait(repoll, &event, 1, -1), EBADF);
	return arg;
}

TEST(closing_an_instance_ends_the_waits_of_other_threads)
{
	pthread_t threads[2];

	for (int i = 0; i < 2; i++)
		pthread_create(&threads[i], NULL, wait_for_ever, NULL);
	await_sleepers(2);
	ck_assert_int_eq(rclose(repoll), 0);
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	repoll = repoll_create(O_CLOEXEC);
}
END_TEST
