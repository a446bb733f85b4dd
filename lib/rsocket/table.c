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

/* Return: the place of a descriptor, or NULL if its block was never needed. */
static struct entry *entry_of(int fd)
{
	struct block *block = NULL;

	if (fd >= 0 && fd <= TABLE_FD_MAX)
		block = __atomic_load_n(&blocks[fd / BLOCK_SIZE], __ATOMIC_ACQUIRE);
	return block ? &block->at[fd % BLOCK_SIZE] : NULL;
}

/* As pthread_spin_lock(), without the call. */
static void lock_entry(struct entry *entry)
{
	while (__atomic_test_and_set(&entry->is_locked, __ATOMIC_ACQUIRE))
		while (__atomic_load_n(&entry->is_locked, __ATOMIC_RELAXED))
			;
}

static void unlock_entry(struct entry *entry)
{
	__atomic_clear(&entry->is_locked, __ATOMIC_RELEASE);
}

int table_add(struct rsock *rs)
{
	struct block *none = NULL, *made;
	struct entry *entry = entry_of(rs->fd);

	if (!entry) {
		made = rs->fd < 0 || rs->fd > TABLE_FD_MAX ? NULL : calloc(1, sizeof(*made));
		if (!made)
			return -ENOMEM;
		if (!__atomic_compare_exchange_n(&blocks[rs->fd / BLOCK_SIZE], &none, made, false,
						 __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
			free(made);
		entry = entry_of(rs->fd);
	}
	lock_entry(entry);
	entry->rs = rs;
	unlock_entry(entry);
	return 0;
}

struct rsock *table_get(int fd)
{
	struct entry *entry = entry_of(fd);
	struct rsock *rs;

	if (!entry)
		return NULL;
	lock_entry(entry);
	rs = entry->rs;
	if (rs)
		rsock_get(rs);
	unlock_entry(entry);
	return rs;
}

struct rsock *table_take(int fd)
{
	struct entry *entry = entry_of(fd);
	struct rsock *rs = NULL;

	if (!entry)
		return NULL;
	lock_entry(entry);
	rs = entry->rs;
	entry->rs = NULL;
	unlock_entry(entry);
	return rs;
}

void table_after_fork(void)
{
	for (int i = 0; i < N_BLOCKS; i++)
		if (blocks[i])
			memset(blocks[i], 0, sizeof(*blocks[i]));
}
