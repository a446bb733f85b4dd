/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The handle table: see table.h.
 */
#include "lib/rsocket/table.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define BLOCK_SIZE 256
#define N_BLOCKS   ((TABLE_FD_MAX + 1) / BLOCK_SIZE)

/* The lock is held for a few instructions, by every call on the socket. */
struct entry {
	struct rsock *rs;
	bool is_locked; /* atomic */
};

struct block {
	struct entry at[BLOCK_SIZE];
};

static struct block *blocks[N_BLOCKS]; /* atomic; never freed */

static struct block *block_of(int fd)
{
	if (fd < 0 || fd > TABLE_FD_MAX)
		return NULL;
	return __atomic_load_n(&blocks[fd / BLOCK_SIZE], __ATOMIC_ACQUIRE);
}

/* What pthread_spin_lock() does, without two calls where the table is asked. */
static void lock(struct entry *entry)
{
	while (__atomic_test_and_set(&entry->is_locked, __ATOMIC_ACQUIRE))
		while (__atomic_load_n(&entry->is_locked, __ATOMIC_RELAXED))
			;
}

static void unlock(struct entry *entry)
{
	__atomic_clear(&entry->is_locked, __ATOMIC_RELEASE);
}

static struct block *make_block(int fd)
{
	struct block *none = NULL;
	struct block *made;

	if (fd < 0 || fd > TABLE_FD_MAX)
		return NULL;
	made = calloc(1, sizeof(*made));
	if (!made)
		return NULL;
	if (__atomic_compare_exchange_n(&blocks[fd / BLOCK_SIZE], &none, made, false,
					__ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
		return made;
	free(made);
	return none;
}

int table_add(struct rsock *rs)
{
	struct block *block = block_of(rs->fd);
	struct entry *entry;

	if (!block)
		block = make_block(rs->fd);
	if (!block)
		return -ENOMEM;
	entry = &block->at[rs->fd % BLOCK_SIZE];
	lock(entry);
	entry->rs = rs;
	unlock(entry);
	return 0;
}

struct rsock *table_get(int fd)
{
	struct block *block = block_of(fd);
	struct entry *entry;
	struct rsock *rs;

	if (!block)
		return NULL;
	entry = &block->at[fd % BLOCK_SIZE];
	lock(entry);
	rs = entry->rs;
	if (rs)
		rsock_get(rs);
	unlock(entry);
	return rs;
}

struct rsock *table_take(int fd)
{
	struct block *block = block_of(fd);
	struct entry *entry;
	struct rsock *rs;

	if (!block)
		return NULL;
	entry = &block->at[fd % BLOCK_SIZE];
	lock(entry);
	rs = entry->rs;
	entry->rs = NULL;
	unlock(entry);
	return rs;
}

void table_after_fork(void)
{
	for (int i = 0; i < N_BLOCKS; i++) {
		if (!blocks[i])
			continue;
		memset(blocks[i], 0, sizeof(*blocks[i]));
	}
}
