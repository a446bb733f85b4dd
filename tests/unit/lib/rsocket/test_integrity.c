/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Received data equals sent data, for all sizes and orders of calls: random calls on both ends of a
 * pair, one run per seed; and once with blocking threads.
 */
#include <errno.h>
#include <pthread.h>
#include <rdma/rsocket.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/lib/rsocket/pair.h"
#include "tests/unit/lib/rsocket/wire_device.h"
#include "tests/unit/test.h"

/* A sanitizer makes each run ten times as slow; the plain build has all of them. */
#ifdef __SANITIZE_ADDRESS__
#define N_SEEDS 4
#define N_ENDS	10
#else
#define N_SEEDS 40
#define N_ENDS	100
#endif
#define N_CALLS	     1000
#define LONGEST	     20000
#define N_IOV	     4
#define THREAD_BYTES 500000

struct direction {
	int from, to;
	uint64_t n_sent, n_received;
};

static uint64_t random_state;

static uint32_t any(uint32_t below)
{
	random_state = random_state * 6364136223846793005ULL + 1442695040888963407ULL;
	return (uint32_t)(random_state >> 33) % below;
}

/* The byte at each position of a stream, different for each direction. */
static uint8_t byte_at(const struct direction *way, uint64_t at)
{
	uint64_t x = (at + 1) * 0x9e3779b97f4a7c15ULL + (uint64_t)way->from;

	return (uint8_t)(x >> 56 ^ x >> 24);
}

/* Mostly short, sometimes long: sent inline, or more than the buffer holds. */
static size_t any_size(void)
{
	return any(4) ? any(200) + 1 : any(LONGEST) + 1;
}

static int split(uint8_t *buf, size_t bytes, struct iovec *iov)
{
	int n = (int)any(N_IOV) + 1;

	for (int i = 0; i < n; i++) {
		size_t part = i + 1 < n ? any((uint32_t)bytes + 1) : bytes;

		iov[i] = (struct iovec){ buf, part };
		buf += part;
		bytes -= part;
	}
	return n;
}

static void send_some(struct direction *way)
{
	static uint8_t buf[LONGEST];
	size_t bytes = any_size();
	struct iovec iov[N_IOV];
	struct msghdr msg = { .msg_iov = iov };
	ssize_t n;

	for (size_t i = 0; i < bytes; i++)
		buf[i] = byte_at(way, way->n_sent + i);
	msg.msg_iovlen = (size_t)split(buf, bytes, iov);
	n = rsendmsg(way->from, &msg, MSG_DONTWAIT);
	ck_assert(n > 0 || errno == EAGAIN);
	way->n_sent += n > 0 ? (uint64_t)n : 0;
}

static void check(const struct direction *way, const uint8_t *buf, size_t n)
{
	size_t same = 0;

	while (same < n && buf[same] == byte_at(way, way->n_received + same))
		same++;
	ck_assert_msg(same == n, "byte %zu after %lu", same, (unsigned long)way->n_received);
}

static void receive_some(struct direction *way)
{
	static uint8_t buf[LONGEST];
	struct iovec iov[N_IOV];
	struct msghdr msg = { .msg_iov = iov };
	int flags = MSG_DONTWAIT | (any(4) ? 0 : MSG_PEEK) | (any(4) ? 0 : MSG_WAITALL);
	ssize_t n;

	msg.msg_iovlen = (size_t)split(buf, any_size(), iov);
	n = rrecvmsg(way->to, &msg, flags);
	if (n < 0) {
		ck_assert_int_eq(errno, EAGAIN);
		ck_assert_uint_eq(way->n_received, way->n_sent);
		return;
	}
	check(way, buf, (size_t)n);
	if (!(flags & MSG_PEEK))
		way->n_received += (uint64_t)n;
}

static void drain(struct direction *way)
{
	static uint8_t buf[LONGEST];
	ssize_t n;

	while ((n = rrecv(way->to, buf, sizeof(buf), 0)) > 0) {
		check(way, buf, (size_t)n);
		way->n_received += (uint64_t)n;
	}
	ck_assert_int_eq(n, 0);
	ck_assert_uint_eq(way->n_received, way->n_sent);
}

static struct stream_sizes any_sizes(void)
{
	return (struct stream_sizes){ .sq_size = 16 + any(32),
				      .rq_size = 16 + any(32),
				      .inline_size = any(2) * 64,
				      .send_bytes = 2048 + any(8000),
				      .recv_bytes = 2 + any(16000),
				      .iomap_size = 0 };
}

/* _i is the seed, also below. */
TEST_LOOP(any_calls_move_the_data_unchanged, 0, N_SEEDS)
{
	struct direction way[2] = { 0 };
	struct pair pair;

	random_state = (uint64_t)_i;
	wire_begin();
	pair = pair_make(any_sizes());
	way[0] = (struct direction){ .from = pair.fd[0], .to = pair.fd[1] };
	way[1] = (struct direction){ .from = pair.fd[1], .to = pair.fd[0] };
	for (int i = 0; i < N_CALLS; i++) {
		struct direction *one = &way[any(2)];

		if (any(2))
			send_some(one);
		else
			receive_some(one);
	}
	ck_assert_int_eq(rshutdown(pair.fd[0], SHUT_WR), 0);
	drain(&way[0]);
	ck_assert_int_eq(rshutdown(pair.fd[1], SHUT_WR), 0);
	drain(&way[1]);
	pair_free(&pair);
	wire_end();
}
END_TEST

/* --- ends and protocol violations ---------------------------------------- */

/* As send_some(), on a connection that may have ended. */
static void try_to_send(struct direction *way)
{
	static uint8_t buf[LONGEST];
	size_t bytes = any_size();
	ssize_t n;

	for (size_t i = 0; i < bytes; i++)
		buf[i] = byte_at(way, way->n_sent + i);
	n = rsend(way->from, buf, bytes, MSG_DONTWAIT);
	ck_assert(n > 0 || errno == EAGAIN || errno == ECONNRESET || errno == EIO);
	way->n_sent += n > 0 ? (uint64_t)n : 0;
}

/* Return: whether more data may arrive. */
static bool try_to_receive(struct direction *way, bool is_checked)
{
	static uint8_t buf[LONGEST];
	ssize_t n = rrecv(way->to, buf, any_size(), MSG_DONTWAIT);

	ck_assert(n >= 0 || errno == EAGAIN || errno == ECONNRESET || errno == EIO);
	if (n <= 0)
		return n < 0 && errno == EAGAIN;
	if (is_checked)
		check(way, buf, (size_t)n);
	way->n_received += (uint64_t)n;
	return true;
}

static void some_calls(struct direction way[2], bool is_checked)
{
	for (uint32_t i = any(200); i; i--) {
		struct direction *one = &way[any(2)];

		if (any(2))
			try_to_send(one);
		else
			try_to_receive(one, is_checked);
	}
}

static void set_ways(struct direction way[2], const struct pair *pair)
{
	way[0] = (struct direction){ .from = pair->fd[0], .to = pair->fd[1] };
	way[1] = (struct direction){ .from = pair->fd[1], .to = pair->fd[0] };
}

/* An end without outstanding requests does not notice by itself; the CM reports it. */
static void await_end(struct stream *s)
{
	pthread_mutex_lock(&s->base.lock);
	stream_progress(&s->base);
	stream_apply(s, STREAM_EV_GONE, 0);
	pthread_mutex_unlock(&s->base.lock);
}

TEST_LOOP(a_reset_at_any_time_loses_nothing_but_the_end, 0, N_ENDS)
{
	struct direction way[2];
	struct pair pair;

	random_state = (uint64_t)_i;
	wire_begin();
	pair = pair_make(any_sizes());
	set_ways(way, &pair);
	some_calls(way, true);
	if (any(2))
		wire_hold(pair.end[any(2)]->id->qp, true);
	some_calls(way, true);
	wire_cut(pair.end[0]->id->qp);
	some_calls(way, true);
	for (int i = 0; i < 2; i++)
		await_end(pair.end[i]);
	for (int i = 0; i < 2; i++) {
		while (try_to_receive(&way[i], true))
			;
		ck_assert_uint_le(way[i].n_received, way[i].n_sent);
	}
	pair_free(&pair);
	wire_end();
}
END_TEST

static uint64_t any_bits(void)
{
	return (uint64_t)any(INT32_MAX) << 32 | any(INT32_MAX);
}

/* An invalid operation or value, mostly near a valid one; or an invalid target. */
static void write_false_word(struct stream *to)
{
	struct rs_entry *entry = &to->memory.table[any(RS_TABLE_ENTRIES)];
	uint32_t value = any(2) ? any(64) : any(1 << 29);

	if (any(2))
		*entry = (struct rs_entry){ any(2) ? entry->addr : any_bits(), any(64),
					    any(2) ? any(9000) : any(INT32_MAX) };
	wire_inject(to->id->qp, any(8) << 29 | value);
}

/*
 * Nothing is written outside of registered memory, every call returns, and another connection has
 * its data unchanged.
 */
TEST_LOOP(protocol_violation_affects_no_other_connection, 0, N_ENDS)
{
	struct direction way[2], other[2];
	struct pair pair, honest;

	random_state = (uint64_t)_i;
	wire_begin();
	wire_allow_lies();
	pair = pair_make(any_sizes());
	honest = pair_make(any_sizes());
	set_ways(way, &pair);
	set_ways(other, &honest);
	for (int i = 0; i < 10; i++) {
		some_calls(way, false);
		write_false_word(pair.end[any(2)]);
		some_calls(other, true);
	}
	for (int i = 0; i < 2; i++) {
		ck_assert_int_eq(rshutdown(honest.fd[i], SHUT_WR), 0);
		drain(&other[i]);
	}
	wire_cut(pair.end[0]->id->qp);
	pair_free(&pair);
	pair_free(&honest);
	wire_end();
}
END_TEST

/* --- threads ------------------------------------------------------------- */

static void *write_all(void *arg)
{
	struct direction *way = arg;
	uint8_t buf[3001];

	while (way->n_sent < THREAD_BYTES) {
		size_t bytes = 1 + (way->n_sent * 7 + 13) % sizeof(buf);
		ssize_t n;

		for (size_t i = 0; i < bytes; i++)
			buf[i] = byte_at(way, way->n_sent + i);
		n = rsend(way->from, buf, bytes, 0);
		ck_assert_int_eq(n, bytes);
		way->n_sent += (uint64_t)n;
	}
	ck_assert_int_eq(rshutdown(way->from, SHUT_WR), 0);
	return NULL;
}

static void *read_all(void *arg)
{
	struct direction *way = arg;
	uint8_t buf[2500];
	ssize_t n;

	do {
		struct pollfd poll = { .fd = way->to, .events = POLLIN };

		/* Every other time through rpoll(), which shares wakeups with the writer. */
		if (way->n_received & 1)
			ck_assert_int_eq(rpoll(&poll, 1, -1), 1);
		n = rrecv(way->to, buf, sizeof(buf), 0);
		ck_assert_int_ge(n, 0);
		check(way, buf, (size_t)n);
		way->n_received += (uint64_t)n;
	} while (n);
	return NULL;
}

TEST(a_reader_and_a_writer_on_each_end_do_not_disturb_each_other)
{
	struct direction way[2] = { 0 }, back[2];
	pthread_t thread[4];
	struct pair pair;

	wire_begin();
	pair = pair_make(pair_small());
	way[0] = (struct direction){ .from = pair.fd[0], .to = pair.fd[1] };
	way[1] = (struct direction){ .from = pair.fd[1], .to = pair.fd[0] };
	memcpy(back, way, sizeof(way));
	for (int i = 0; i < 2; i++) {
		pthread_create(&thread[i], NULL, write_all, &way[i]);
		pthread_create(&thread[i + 2], NULL, read_all, &back[i]);
	}
	for (int i = 0; i < 4; i++)
		pthread_join(thread[i], NULL);
	for (int i = 0; i < 2; i++)
		ck_assert_uint_eq(back[i].n_received, way[i].n_sent);
	pair_free(&pair);
	wire_end();
}
END_TEST
