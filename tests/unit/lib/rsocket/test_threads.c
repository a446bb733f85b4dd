/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Many sockets and many threads at once: a reader and a writer on each end, a repoll with several
 * waiting threads, sockets that are closed during calls. tests/loop/loop.py runs it under
 * ThreadSanitizer.
 */
#include <errno.h>
#include <pthread.h>
#include <rdma/rsocket.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/unit/lib/rsocket/pair.h"
#include "tests/unit/lib/rsocket/wire_device.h"
#include "tests/unit/test.h"

#define N_PAIRS	  32
#define N_WAYS	  (2 * N_PAIRS)
#define WAY_BYTES 15000
#define N_WAITERS 4

/* One direction of a pair: the data is a function of its position. */
struct way {
	int from, to;
	uint64_t n_sent, n_received; /* of the writer, of the reader */
	pthread_t writer, reader;
};

static struct pair pairs[N_PAIRS];
static struct way ways[N_WAYS];

static uint8_t byte_at(const struct way *way, uint64_t at)
{
	return (uint8_t)((at + 1) * 0x9e3779b97f4a7c15ULL >> 56 ^ (uint64_t)way->from);
}

static void make_all(void)
{
	wire_begin();
	for (int i = 0; i < N_PAIRS; i++) {
		pairs[i] = pair_make(pair_small());
		for (int j = 0; j < 2; j++)
			ways[2 * i + j] =
				(struct way){ .from = pairs[i].fd[j], .to = pairs[i].fd[!j] };
	}
}

static void free_all(void)
{
	for (int i = 0; i < N_PAIRS; i++)
		pair_free(&pairs[i]);
	wire_end();
}

/* --- readers and writers ------------------------------------------------- */

static void *write_all(void *arg)
{
	struct way *way = arg;
	uint8_t buf[3001];

	while (way->n_sent < WAY_BYTES) {
		size_t bytes = 1 + (way->n_sent * 7 + 13) % sizeof(buf);

		for (size_t i = 0; i < bytes; i++)
			buf[i] = byte_at(way, way->n_sent + i);
		ck_assert_int_eq(rsend(way->from, buf, bytes, 0), (ssize_t)bytes);
		way->n_sent += bytes;
	}
	ck_assert_int_eq(rshutdown(way->from, SHUT_WR), 0);
	return NULL;
}

static size_t receive(struct way *way)
{
	uint8_t buf[2500];
	ssize_t i = 0, n = rrecv(way->to, buf, sizeof(buf), 0);

	ck_assert_int_ge(n, 0);
	while (i < n && buf[i] == byte_at(way, way->n_received + (uint64_t)i))
		i++;
	ck_assert_msg(i == n, "byte %zd is another one", i);
	way->n_received += (uint64_t)n;
	return (size_t)n;
}

static void *read_all(void *arg)
{
	struct way *way = arg;

	do {
		struct pollfd poll = { .fd = way->to, .events = POLLIN };

		/* Every other time through rpoll(), which shares wakeups with the writer. */
		if (way->n_received & 1)
			ck_assert_int_eq(rpoll(&poll, 1, -1), 1);
	} while (receive(way));
	return NULL;
}

TEST(a_reader_and_a_writer_on_each_of_64_ends_do_not_disturb_each_other)
{
	make_all();
	for (int i = 0; i < N_WAYS; i++) {
		pthread_create(&ways[i].writer, NULL, write_all, &ways[i]);
		pthread_create(&ways[i].reader, NULL, read_all, &ways[i]);
	}
	for (int i = 0; i < N_WAYS; i++) {
		pthread_join(ways[i].writer, NULL);
		pthread_join(ways[i].reader, NULL);
		ck_assert_uint_eq(ways[i].n_received, ways[i].n_sent);
	}
	free_all();
}
END_TEST

/* --- one repoll, several waiting threads --------------------------------- */

static int repoll;
static unsigned int n_ended; /* atomic */

static void serve(struct epoll_event *event)
{
	struct way *way = event->data.ptr;

	if (!receive(way)) {
		__atomic_add_fetch(&n_ended, 1, __ATOMIC_RELAXED);
		return;
	}
	event->events = EPOLLIN | EPOLLONESHOT;
	ck_assert_int_eq(repoll_ctl(repoll, EPOLL_CTL_MOD, way->to, event), 0);
}

static void *serve_all(void *unused)
{
	struct epoll_event event[4];

	(void)unused;
	while (__atomic_load_n(&n_ended, __ATOMIC_RELAXED) < N_WAYS) {
		int n = repoll_wait(repoll, event, 4, 10);

		ck_assert(n >= 0 && n <= 4);
		for (int i = 0; i < n; i++)
			serve(&event[i]);
	}
	return NULL;
}

TEST(four_threads_share_a_repoll_of_64_sockets)
{
	pthread_t waiter[N_WAITERS];

	make_all();
	n_ended = 0;
	repoll = repoll_create(0);
	ck_assert_int_ge(repoll, 0);
	for (int i = 0; i < N_WAYS; i++) {
		struct epoll_event event = { EPOLLIN | EPOLLONESHOT, { .ptr = &ways[i] } };

		ck_assert_int_eq(repoll_ctl(repoll, EPOLL_CTL_ADD, ways[i].to, &event), 0);
		pthread_create(&ways[i].writer, NULL, write_all, &ways[i]);
	}
	for (int i = 0; i < N_WAITERS; i++)
		pthread_create(&waiter[i], NULL, serve_all, NULL);
	for (int i = 0; i < N_WAITERS; i++)
		pthread_join(waiter[i], NULL);
	for (int i = 0; i < N_WAYS; i++) {
		pthread_join(ways[i].writer, NULL);
		ck_assert_uint_eq(ways[i].n_received, ways[i].n_sent);
		ck_assert_int_eq(repoll_ctl(repoll, EPOLL_CTL_DEL, ways[i].to, NULL), 0);
	}
	ck_assert_int_eq(rclose(repoll), 0);
	free_all();
}
END_TEST

/* --- closed during a call ------------------------------------------------ */

static pthread_barrier_t all_are_inside;

static void *read_until_closed(void *arg)
{
	const struct way *way = arg;
	uint8_t buf[100];
	ssize_t n;

	ck_assert_int_gt(rrecv(way->to, buf, sizeof(buf), 0), 0);
	pthread_barrier_wait(&all_are_inside);
	while ((n = rrecv(way->to, buf, sizeof(buf), 0)) > 0)
		;
	ck_assert(n == 0 || errno == EBADF || errno == ECONNRESET);
	return NULL;
}

static void *write_until_closed(void *arg)
{
	const struct way *way = arg;
	static const uint8_t buf[100];

	ck_assert_int_gt(rsend(way->from, buf, sizeof(buf), 0), 0);
	pthread_barrier_wait(&all_are_inside);
	while (rsend(way->from, buf, sizeof(buf), 0) > 0)
		;
	ck_assert(errno == EBADF || errno == ECONNRESET || errno == EIO);
	return NULL;
}

/* Shut down, not closed: the number of a closed socket could be reused during a call. */
TEST(sockets_closed_during_calls_end_reader_and_writer)
{
	make_all();
	pthread_barrier_init(&all_are_inside, NULL, 2 * N_WAYS + 1);
	for (int i = 0; i < N_WAYS; i++) {
		pthread_create(&ways[i].writer, NULL, write_until_closed, &ways[i]);
		pthread_create(&ways[i].reader, NULL, read_until_closed, &ways[i]);
	}
	pthread_barrier_wait(&all_are_inside);
	for (int i = 0; i < N_PAIRS; i++)
		ck_assert_int_eq(rshutdown(pairs[i].fd[0], SHUT_RDWR), 0);
	for (int i = 0; i < N_WAYS; i++) {
		pthread_join(ways[i].writer, NULL);
		pthread_join(ways[i].reader, NULL);
	}
	free_all();
}
END_TEST

#define N_TAKERS     4
#define TAKERS_BYTES 65000 /* of each writer */
#define RECORD_BYTES 5000

static uint64_t n_taken[N_TAKERS]; /* bytes of each reader */

/* Sends are not mixed: each record consists of one letter. */
static void *write_records(void *arg)
{
	uint8_t record[RECORD_BYTES];

	memset(record, (int)(uintptr_t)arg, sizeof(record));
	for (int i = 0; i < TAKERS_BYTES / RECORD_BYTES; i++)
		ck_assert_int_eq(rsend(pairs[0].fd[0], record, sizeof(record), 0), sizeof(record));
	return NULL;
}

static void *read_records(void *arg)
{
	uint64_t *n = arg;
	uint8_t record[RECORD_BYTES];

	while (rrecv(pairs[0].fd[1], record, sizeof(record), MSG_WAITALL) == sizeof(record)) {
		ck_assert_mem_eq(record + 1, record, sizeof(record) - 1);
		*n += sizeof(record);
	}
	return NULL;
}

TEST(four_writers_and_four_readers_of_one_socket_take_turns)
{
	pthread_t writer[N_TAKERS], reader[N_TAKERS];
	uint64_t sum = 0;

	make_all();
	for (int i = 0; i < N_TAKERS; i++) {
		pthread_create(&writer[i], NULL, write_records, (void *)(uintptr_t)(i + 1));
		pthread_create(&reader[i], NULL, read_records, &n_taken[i]);
	}
	for (int i = 0; i < N_TAKERS; i++)
		pthread_join(writer[i], NULL);
	ck_assert_int_eq(rshutdown(pairs[0].fd[0], SHUT_WR), 0);
	for (int i = 0; i < N_TAKERS; i++) {
		pthread_join(reader[i], NULL);
		sum += n_taken[i];
	}
	ck_assert_uint_eq(sum, N_TAKERS * TAKERS_BYTES);
	free_all();
}
END_TEST

#ifdef __SANITIZE_ADDRESS__
#define N_SHORT 500
#else
#define N_SHORT 2000
#endif
#define SHORT_BYTES 16

/* The cancellation is pending before the first call, and acts in any call that allows it. */
static void *read_while_cancelled(void *arg)
{
	struct way *way = arg;
	uint8_t buf[SHORT_BYTES];

	pthread_cancel(pthread_self());
	while (rrecv(way->to, buf, sizeof(buf), MSG_WAITALL) == sizeof(buf))
		way->n_received += sizeof(buf);
	pthread_testcancel();
	return NULL;
}

TEST(reader_is_cancelled_in_no_call)
{
	struct way *way = &ways[0];
	uint8_t buf[SHORT_BYTES] = { 0 };
	void *result;

	make_all();
	ck_assert_int_eq(rsend(way->from, buf, sizeof(buf), 0), sizeof(buf));
	pthread_create(&way->reader, NULL, read_while_cancelled, way);
	for (int i = 1; i < N_SHORT; i++)
		ck_assert_int_eq(rsend(way->from, buf, sizeof(buf), 0), sizeof(buf));
	ck_assert_int_eq(rshutdown(way->from, SHUT_WR), 0);
	pthread_join(way->reader, &result);
	ck_assert_ptr_eq(result, PTHREAD_CANCELED);
	ck_assert_uint_eq(way->n_received, N_SHORT * SHORT_BYTES);
	free_all();
}
END_TEST

/* --- a call that must not wait beside one that waits --------------------------- */

static void *wait_in_recv(void *unused)
{
	char byte;

	ck_assert_int_eq(rrecv(pairs[0].fd[0], &byte, 1, 0), 1);
	return unused;
}

static void *wait_in_send(void *unused)
{
	ck_assert_int_eq(rsend(pairs[0].fd[0], "x", 1, 0), 1);
	return unused;
}

static void await_taken(const struct token *token)
{
	pthread_mutex_t *lock = &pairs[0].end[0]->base.lock;
	bool is_taken = false;

	while (!is_taken) {
		pthread_mutex_lock(lock);
		is_taken = token->is_taken;
		pthread_mutex_unlock(lock);
	}
}

TEST(recv_that_must_not_wait_ends_while_another_waits)
{
	pthread_t thread;
	char byte;

	make_all();
	pthread_create(&thread, NULL, wait_in_recv, NULL);
	await_taken(&pairs[0].end[0]->recv_token);
	ck_assert_int_eq(rrecv(pairs[0].fd[0], &byte, 1, MSG_DONTWAIT), -1);
	ck_assert_int_eq(errno, EAGAIN);
	ck_assert_int_eq(rrecv(pairs[0].fd[0], &byte, 1, MSG_DONTWAIT | MSG_PEEK), -1);
	ck_assert_int_eq(errno, EAGAIN);
	ck_assert_int_eq(rsend(pairs[0].fd[1], "ab", 2, 0), 2);
	/* The other thread has one of them, even if it has not woken up yet. */
	ck_assert_int_eq(rrecv(pairs[0].fd[0], &byte, 1, MSG_DONTWAIT), 1);
	pthread_join(thread, NULL);
	free_all();
}
END_TEST

TEST(send_that_must_not_wait_ends_while_another_waits)
{
	static char much[WAY_BYTES];
	pthread_t thread;

	make_all();
	while (rsend(pairs[0].fd[0], much, sizeof(much), MSG_DONTWAIT) > 0)
		;
	pthread_create(&thread, NULL, wait_in_send, NULL);
	await_taken(&pairs[0].end[0]->send_token);
	ck_assert_int_eq(rsend(pairs[0].fd[0], much, 1, MSG_DONTWAIT), -1);
	ck_assert_int_eq(errno, EAGAIN);
	ck_assert_int_gt(rrecv(pairs[0].fd[1], much, sizeof(much), 0), 0);
	ck_assert_int_eq(rsend(pairs[0].fd[0], much, 1, 0), 1);
	pthread_join(thread, NULL);
	free_all();
}
END_TEST
