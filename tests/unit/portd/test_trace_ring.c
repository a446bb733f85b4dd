/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The trace ring: messages are read once, in order, and overwritten ones are counted; also while
 * messages are written.
 */
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/portd/proto/trace_ring.h"
#include "tests/unit/test.h"

#define RECORDED 3000 /* messages of the ring: more than one chunk */
#define STORM	 (200 * RECORDED)

static struct trace_ring ring;
static struct trace_reader reader;
static int file_fd;
static uint64_t n_written;

static void begin_to_record(void)
{
	trace_ring_fini(&ring);
	ck_assert_int_eq(trace_ring_open(&ring, dup(file_fd), RECORDED), 0);
}

static void set_up(void)
{
	n_written = 0;
	ring.fd = -1;
	file_fd = memfd_create("recorded", MFD_CLOEXEC);
	begin_to_record();
	ck_assert_int_eq(trace_reader_open(&reader, dup(file_fd)), 0);
}

static bool take(struct trace_entry *ret)
{
	if (trace_reader_take(&reader, ret))
		return true;
	ck_assert_int_eq(trace_reader_update(&reader), 0);
	return trace_reader_take(&reader, ret);
}

static void tear_down(void)
{
	trace_reader_fini(&reader);
	trace_ring_fini(&ring);
	close(file_fd);
}

/* All bytes of a message contain its number. */
static void write_some(unsigned int n)
{
	struct trace_entry *message;

	while (n--) {
		message = trace_ring_begin(&ring);
		memset(message->mad, (uint8_t)++n_written, sizeof(message->mad));
		if (message->number != n_written)
			abort(); /* an assertion for each would take most of the time */
		trace_ring_end(&ring);
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
TEST(each_message_is_read_once)
{
	struct trace_entry message;

	write_some(2);
	ck_assert(take(&message));
	ck_assert_uint_eq(message.number, 1);
	ck_assert(take(&message));
	ck_assert_uint_eq(message.number, 2);
	ck_assert(is_in_one_piece(&message));
	ck_assert(!take(&message));
}

TEST(later_reader_may_begin_with_the_next_message)
{
	struct trace_reader late;
	struct trace_entry message;

	write_some(5);
	ck_assert_int_eq(trace_reader_open(&late, dup(ring.fd)), 0);
	trace_reader_skip(&late);
	ck_assert(!trace_reader_take(&late, &message));
	write_some(1);
	ck_assert_int_eq(trace_reader_update(&late), 0);
	ck_assert(trace_reader_take(&late, &message));
	ck_assert_uint_eq(message.number, 6);
	trace_reader_fini(&late);
}

TEST(a_ring_that_is_almost_full_has_lost_nothing)
{
	struct trace_entry message;

	write_some(RECORDED);
	ck_assert(take(&message));
	ck_assert_uint_eq(message.number, 1);
	ck_assert_uint_eq(reader.n_missed, 0);
}

static void *write_without_pause(void *arg)
{
	write_some(STORM);
	return arg;
}

TEST(no_message_is_torn_under_load)
{
	struct trace_entry message = { .number = 0 };
	pthread_t writer;
	uint64_t n = 0;

	ck_assert_int_eq(pthread_create(&writer, NULL, write_without_pause, NULL), 0);
	while (message.number != STORM) {
		if (!take(&message))
			continue;
		ck_assert(is_in_one_piece(&message));
		n++;
	}
	pthread_join(writer, NULL);
	ck_assert_uint_eq(n + reader.n_missed, STORM);
}

TEST(invalid_ring_is_not_read)
{
	struct trace_reader none;
	int fd = memfd_create("no ring", MFD_CLOEXEC);

	ck_assert_int_eq(ftruncate(fd, 10000), 0);
	ck_assert_int_eq(trace_reader_open(&none, fd), -EPROTO);
	ck_assert_int_eq(trace_reader_open(&none, -1), -EBADF);
}

/* Return: the number of messages in the recording; @ret_first is the number of its first. */
static uint64_t play_back(uint64_t *ret_first)
{
	struct trace_entry message;
	uint64_t n = 0;

	trace_reader_fini(&reader);
	ck_assert_int_eq(trace_reader_open(&reader, dup(file_fd)), 0);
	for (; trace_reader_take(&reader, &message); n++) {
		ck_assert(is_in_one_piece(&message));
		if (n == 0)
			*ret_first = message.number;
		ck_assert_uint_eq(message.number, *ret_first + n);
	}
	ck_assert_uint_eq(reader.n_missed, 0);
	return n;
}

TEST(a_recording_begins_with_its_first_message)
{
	uint64_t first = 0;

	ck_assert_uint_eq(play_back(&first), 0);
	write_some(2);
	ck_assert_uint_eq(play_back(&first), 2);
	ck_assert_uint_eq(first, 1);
}

TEST(a_recording_keeps_the_latest)
{
	uint64_t first = 0;

	write_some(2 * RECORDED + 7);
	ck_assert_uint_eq(play_back(&first), RECORDED);
	ck_assert_uint_eq(first, RECORDED + 8);
}

TEST(a_recording_is_continued)
{
	uint64_t first = 0;

	write_some(RECORDED + 1);
	begin_to_record();
	write_some(1);
	ck_assert_uint_eq(play_back(&first), RECORDED);
	ck_assert_uint_eq(first, 3);
}

TEST(a_recording_can_be_followed)
{
	struct trace_entry message;
	uint64_t first, n = 0;

	play_back(&first);
	while (n < 3 * RECORDED) {
		write_some(7 + (unsigned int)(n % 1000));
		ck_assert_int_eq(trace_reader_update(&reader), 0);
		while (trace_reader_take(&reader, &message)) {
			ck_assert_uint_eq(message.number, ++n);
			ck_assert(is_in_one_piece(&message));
		}
		ck_assert_uint_eq(n, n_written);
	}
	ck_assert_uint_eq(reader.n_missed, 0);
}

TEST(slow_reader_of_a_recording_counts_lost_messages)
{
	struct trace_entry message;
	uint64_t first;

	play_back(&first);
	write_some(2 * RECORDED + 5);
	ck_assert_int_eq(trace_reader_update(&reader), 0);
	ck_assert_uint_eq(reader.n_missed, RECORDED + 5);
	ck_assert(trace_reader_take(&reader, &message));
	ck_assert_uint_eq(message.number, RECORDED + 6);
}

TEST(a_recording_of_another_size_is_replaced)
{
	uint64_t first = 0;

	write_some(5);
	trace_ring_fini(&ring);
	ck_assert_int_eq(trace_ring_open(&ring, dup(file_fd), 2 * RECORDED), 0);
	n_written = 0;
	write_some(1);
	ck_assert_uint_eq(play_back(&first), 1);
}

TEST(a_recording_has_memory_where_it_is_written_to)
{
	struct stat before, after;

	ck_assert_int_eq(fstat(file_fd, &before), 0);
	write_some(RECORDED / 2);
	ck_assert_int_eq(fstat(file_fd, &after), 0);
	ck_assert_int_lt(before.st_blocks, before.st_size / 512);
	ck_assert_int_gt(after.st_blocks, before.st_blocks);
	ck_assert_int_eq(after.st_size, before.st_size);
}

/* Loop test: a file truncated to so many hundred bytes. */
TEST_LOOP(invalid_recording_is_not_read, 0, 12)
{
	write_some(1);
	trace_reader_fini(&reader);
	ck_assert_int_eq(ftruncate(file_fd, 100 * _i), 0);
	ck_assert_int_eq(trace_reader_open(&reader, dup(file_fd)), _i ? -EPROTO : -ENODATA);
	ck_assert_ptr_null(reader.ring);
}

TEST(a_recording_of_another_version_is_not_read)
{
	const uint32_t magic = 1;

	ck_assert_int_eq(pwrite(file_fd, &magic, sizeof(magic), 0), sizeof(magic));
	ck_assert_int_eq(trace_reader_open(&reader, dup(file_fd)), -EPROTO);
}
