/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The trace ring: what is written is read once, in order, and what was overwritten is counted; also
 * while it is being written.
 */
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "lib/portd/proto/trace_ring.h"
#include "tests/unit/test.h"

#define STORM (40 * TRACE_RING_ENTRIES)

static struct trace_ring ring;
static struct trace_reader reader;

static void set_up(void)
{
	ck_assert_int_eq(trace_ring_init(&ring), 0);
	ck_assert_int_eq(trace_reader_init(&reader, ring.fd), 0);
}

static void tear_down(void)
{
	trace_reader_fini(&reader);
	trace_ring_fini(&ring);
}

/* All bytes of a message say which it is. */
static void write_some(unsigned int n)
{
	struct trace_entry *message;

	while (n--) {
		message = trace_ring_next(&ring);
		memset(message->mad, (uint8_t)message->number, sizeof(message->mad));
		trace_ring_publish(&ring);
	}
}

static bool is_in_one_piece(const struct trace_entry *message)
{
	size_t i;

	for (i = 0; i < sizeof(message->mad); i++)
		if (message->mad[i] != (uint8_t)message->number)
			return false;
	return true;
}

FIXTURE(set_up, tear_down);
TIME_LIMIT_S(60);

TEST(what_is_written_is_read_once)
{
	struct trace_entry message;

	write_some(2);
	ck_assert(trace_reader_take(&reader, &message));
	ck_assert_uint_eq(message.number, 1);
	ck_assert(trace_reader_take(&reader, &message));
	ck_assert_uint_eq(message.number, 2);
	ck_assert(is_in_one_piece(&message));
	ck_assert(!trace_reader_take(&reader, &message));
}

TEST(who_comes_later_begins_with_the_next)
{
	struct trace_reader late;
	struct trace_entry message;

	write_some(5);
	ck_assert_int_eq(trace_reader_init(&late, ring.fd), 0);
	ck_assert(!trace_reader_take(&late, &message));
	write_some(1);
	ck_assert(trace_reader_take(&late, &message));
	ck_assert_uint_eq(message.number, 6);
	trace_reader_fini(&late);
}

TEST(a_ring_that_is_almost_full_has_lost_nothing)
{
	struct trace_entry message;

	write_some(TRACE_RING_ENTRIES);
	ck_assert(trace_reader_take(&reader, &message));
	ck_assert_uint_eq(message.number, 1);
	ck_assert_uint_eq(reader.n_missed, 0);
}

TEST(what_was_overwritten_is_counted)
{
	struct trace_entry message;

	write_some(3 * TRACE_RING_ENTRIES);
	ck_assert(trace_reader_take(&reader, &message));
	ck_assert_uint_eq(message.number, reader.n_missed + 1);
	ck_assert_uint_ge(message.number, 2 * TRACE_RING_ENTRIES);
}

static void *storm(void *arg)
{
	write_some(STORM);
	return arg;
}

TEST(no_message_is_torn_however_fast_they_come)
{
	struct trace_entry message = { .number = 0 };
	pthread_t writer;
	uint64_t n = 0;

	ck_assert_int_eq(pthread_create(&writer, NULL, storm, NULL), 0);
	while (message.number != STORM) {
		if (!trace_reader_take(&reader, &message))
			continue;
		ck_assert(is_in_one_piece(&message));
		n++;
	}
	pthread_join(writer, NULL);
	ck_assert_uint_eq(n + reader.n_missed, STORM);
}

TEST(a_reader_cannot_write)
{
	ck_assert_ptr_eq(mmap(NULL, 4096, PROT_WRITE, MAP_SHARED, ring.fd, 0), MAP_FAILED);
	ck_assert_int_lt(write(ring.fd, "x", 1), 0);
	ck_assert_int_lt(ftruncate(ring.fd, 0), 0);
}

TEST(what_is_no_ring_is_not_read)
{
	int fd = memfd_create("no ring", MFD_CLOEXEC);

	ck_assert_int_eq(trace_reader_init(&reader, fd), -EPROTO);
	close(fd);
	ck_assert_int_eq(trace_reader_init(&reader, -1), -EPROTO);
}
