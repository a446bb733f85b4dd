/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The feed: what is written is read once, in order, and what was overwritten is counted; also
 * while it is being written.
 */
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "lib/portd/proto/feed.h"
#include "tests/unit/cm/run.h"

#define STORM (40 * FEED_MESSAGES)

static struct feed feed;
static struct feed_reader reader;

static void set_up(void)
{
	ck_assert_int_eq(feed_init(&feed), 0);
	ck_assert_int_eq(feed_reader_init(&reader, feed.fd), 0);
}

static void tear_down(void)
{
	feed_reader_fini(&reader);
	feed_fini(&feed);
}

/* All bytes of a message say which it is. */
static void write_some(unsigned int n)
{
	struct feed_message *message;

	while (n--) {
		message = feed_next(&feed);
		memset(message->mad, (uint8_t)message->number, sizeof(message->mad));
		feed_put(&feed);
	}
}

static bool is_in_one_piece(const struct feed_message *message)
{
	size_t i;

	for (i = 0; i < sizeof(message->mad); i++)
		if (message->mad[i] != (uint8_t)message->number)
			return false;
	return true;
}

START_TEST(what_is_written_is_read_once)
{
	struct feed_message message;

	write_some(2);
	ck_assert(feed_take(&reader, &message));
	ck_assert_uint_eq(message.number, 1);
	ck_assert(feed_take(&reader, &message));
	ck_assert_uint_eq(message.number, 2);
	ck_assert(is_in_one_piece(&message));
	ck_assert(!feed_take(&reader, &message));
}
END_TEST

START_TEST(who_comes_later_begins_with_the_next)
{
	struct feed_reader late;
	struct feed_message message;

	write_some(5);
	ck_assert_int_eq(feed_reader_init(&late, feed.fd), 0);
	ck_assert(!feed_take(&late, &message));
	write_some(1);
	ck_assert(feed_take(&late, &message));
	ck_assert_uint_eq(message.number, 6);
	feed_reader_fini(&late);
}
END_TEST

START_TEST(a_ring_that_is_almost_full_has_lost_nothing)
{
	struct feed_message message;

	write_some(FEED_MESSAGES);
	ck_assert(feed_take(&reader, &message));
	ck_assert_uint_eq(message.number, 1);
	ck_assert_uint_eq(reader.n_missed, 0);
}
END_TEST

START_TEST(what_was_overwritten_is_counted)
{
	struct feed_message message;

	write_some(3 * FEED_MESSAGES);
	ck_assert(feed_take(&reader, &message));
	ck_assert_uint_eq(message.number, reader.n_missed + 1);
	ck_assert_uint_ge(message.number, 2 * FEED_MESSAGES);
}
END_TEST

static void *storm(void *arg)
{
	write_some(STORM);
	return arg;
}

START_TEST(no_message_is_torn_however_fast_they_come)
{
	struct feed_message message = { .number = 0 };
	pthread_t writer;
	uint64_t n = 0;

	ck_assert_int_eq(pthread_create(&writer, NULL, storm, NULL), 0);
	while (message.number != STORM) {
		if (!feed_take(&reader, &message))
			continue;
		ck_assert(is_in_one_piece(&message));
		n++;
	}
	pthread_join(writer, NULL);
	ck_assert_uint_eq(n + reader.n_missed, STORM);
}
END_TEST

START_TEST(a_reader_cannot_write)
{
	ck_assert_ptr_eq(mmap(NULL, 4096, PROT_WRITE, MAP_SHARED, feed.fd, 0), MAP_FAILED);
	ck_assert_int_lt(write(feed.fd, "x", 1), 0);
	ck_assert_int_lt(ftruncate(feed.fd, 0), 0);
}
END_TEST

START_TEST(what_is_no_feed_is_not_read)
{
	int fd = memfd_create("no feed", MFD_CLOEXEC);

	ck_assert_int_eq(feed_reader_init(&reader, fd), -EPROTO);
	close(fd);
	ck_assert_int_eq(feed_reader_init(&reader, -1), -EPROTO);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("feed");
	TCase *tcase = tcase_create("feed");

	tcase_add_checked_fixture(tcase, set_up, tear_down);
	tcase_add_test(tcase, what_is_written_is_read_once);
	tcase_add_test(tcase, who_comes_later_begins_with_the_next);
	tcase_add_test(tcase, a_ring_that_is_almost_full_has_lost_nothing);
	tcase_add_test(tcase, what_was_overwritten_is_counted);
	tcase_add_test(tcase, no_message_is_torn_however_fast_they_come);
	tcase_add_test(tcase, a_reader_cannot_write);
	tcase_add_test(tcase, what_is_no_feed_is_not_read);
	tcase_set_timeout(tcase, 60);
	suite_add_tcase(suite, tcase);
	return run_suite(suite);
}
