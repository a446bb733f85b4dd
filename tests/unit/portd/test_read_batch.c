/* SPDX-License-Identifier: BSD-2-Clause */
/* lib/portd/server/clients/read_batch.h: how many messages are read at a time. */
#include "lib/portd/server/clients/read_batch.h"
#include "tests/unit/test.h"

#define N_MAX 8

/* Reads @n_waiting messages that wait. Return: the number of system calls. */
static unsigned int count_reads(struct read_batch *batch, unsigned int n_waiting)
{
	unsigned int n_left = n_waiting, n_read, n_reads = 0;
	bool is_dry = false;

	do {
		const unsigned int size = read_batch_size(batch);

		n_read = n_left < size ? n_left : size;
		is_dry = n_read < size;
		n_left -= n_read;
		n_reads += n_read + is_dry;
		read_batch_note(batch, n_read, is_dry, N_MAX);
	} while (n_left);
	return n_reads;
}

TEST(messages_that_come_one_by_one_are_rarely_read_in_vain)
{
	struct read_batch batch = { 0 };
	unsigned int i, n_reads = 0;

	for (i = 0; i < 100; i++)
		n_reads += count_reads(&batch, 1);
	ck_assert_uint_eq(n_reads, 120);
}

TEST(batches_grow_to_the_maximum_while_messages_wait)
{
	struct read_batch batch = { 0 };

	count_reads(&batch, 4 + 2 + 4);
	ck_assert_uint_eq(read_batch_size(&batch), N_MAX);
	count_reads(&batch, N_MAX);
	ck_assert_uint_eq(read_batch_size(&batch), N_MAX);
}

TEST(batches_shrink_to_what_there_was)
{
	struct read_batch batch = { .more = N_MAX - 1 };

	ck_assert_uint_eq(count_reads(&batch, 3), 4);
	ck_assert_uint_eq(read_batch_size(&batch), 3);
	ck_assert_uint_eq(count_reads(&batch, 3), 3);
}

TEST(nothing_to_read_leaves_one_try)
{
	struct read_batch batch = { .more = N_MAX - 1 };

	ck_assert_uint_eq(count_reads(&batch, 0), 1);
	ck_assert_uint_eq(read_batch_size(&batch), 1);
}
