/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How many messages to try to read from a descriptor that is readable. A try that finds nothing
 * costs a system call, so it is as many as there were; more, if there were more several times.
 */
#ifndef LIB_PORTD_SERVER_CLIENTS_READ_BATCH_H
#define LIB_PORTD_SERVER_CLIENTS_READ_BATCH_H

#include <stdbool.h>

#define READ_BATCH_FULL 4 /* a message at a time becomes two after as many times */

/* Zeroed: one. */
struct read_batch {
	unsigned int more;   /* than one */
	unsigned int n_full; /* consecutive batches of one message that were full */
};

static inline unsigned int read_batch_size(const struct read_batch *batch)
{
	return batch->more + 1;
}

/**
 * read_batch_note() - set the size of the next batch
 * @n_read: of this one
 * @is_dry: the last try found nothing
 */
static inline void read_batch_note(struct read_batch *batch, unsigned int n_read, bool is_dry,
				   unsigned int n_max)
{
	unsigned int next = n_read;

	if (!is_dry && n_read == 1 && ++batch->n_full < READ_BATCH_FULL)
		return;
	batch->n_full = 0;
	if (!is_dry)
		next = 2 * n_read < n_max ? 2 * n_read : n_max;
	batch->more = next ? next - 1 : 0;
}

#endif
