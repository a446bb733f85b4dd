/* SPDX-License-Identifier: BSD-2-Clause */
/* Unit tests of base/reads.h. */
#include "base/reads.h"

#include "tests/unit/test.h"

#define LIMIT 8

/* How many calls it takes to read what comes in a number of turns, so many in each. */
static unsigned int calls_for(struct reads *reads, unsigned int n_turns, unsigned int n_each)
{
	unsigned int calls = 0, unread = 0, n, i;

	for (i = 0; i < n_turns; i++) {
		unread += n_each;
		n = unread < reads->most ? unread : reads->most;
		calls += n + (n < reads->most);
		unread -= n;
		reads_done(reads, n, n < reads->most, LIMIT);
	}
	ck_assert_uint_le(unread, n_each);
	return calls;
}

TEST(single_messages_are_rarely_looked_behind)
{
	struct reads reads = { .most = 1 };

	ck_assert_uint_le(calls_for(&reads, 1000, 1), 1000 + 2 * 1000 / READS_PAUSE);
}

TEST(many_messages_are_taken_in_a_turn)
{
	struct reads reads = { .most = 1 };
	unsigned int unread = 1000, n_turns;

	for (n_turns = 0; unread; n_turns++) {
		unsigned int n = unread < reads.most ? unread : reads.most;

		unread -= n;
		reads_done(&reads, n, n < reads.most, LIMIT);
	}
	ck_assert_uint_le(n_turns, 1000 / LIMIT + 4);
}

TEST(a_crowd_after_single_messages_is_soon_taken_together)
{
	struct reads reads = { .most = 1 };
	unsigned int i;

	calls_for(&reads, 100, 1);
	for (i = 0; i < READS_PAUSE + 4; i++)
		reads_done(&reads, reads.most, false, LIMIT);
	ck_assert_uint_eq(reads.most, LIMIT);
}

TEST(nothing_at_all_leaves_one_try)
{
	struct reads reads = { .most = LIMIT };

	reads_done(&reads, 0, true, LIMIT);
	ck_assert_uint_eq(reads.most, 1);
}
