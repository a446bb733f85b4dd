/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The handle table: see table.h.
 */
#include "lib/rsocket/table.h"

#include <errno.h>
#include <stdlib.h>

#define BLOCK_SIZE 256
#define N_BLOCKS   ((TABLE_FD_MAX + 1) / BLOCK_SIZE)
#define N_LOCKS	   64

struct block {
	struct rsock *at[BLOCK_SIZE];
};

static struct block *blocks[N_BLOCKS]; /* atomic; never freed */
static pthread_mutex_t locks[N_LOCKS] = { [0 ... N_LOCKS - 1] = PTHREAD_MUTEX_INITIALIZER };

static pthread_mutex_t *lock_of(int fd)
{
	return &locks[fd % N_LOCKS];
}

static struct block *block_of(int fd)
{
	if (fd < 0 || fd > TABLE_FD_MAX)
		return NULL;
	return __atomic_load_n(&blocks[fd / BLOCK_SIZE], __ATOMIC_ACQUIRE);
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

	if (!block)
		block = make_block(rs->fd);
	if (!block)
		return -ENOMEM;
	pthread_mutex_lock(lock_of(rs->fd));
	block->at[rs->fd % BLOCK_SIZE] = rs;
	pthread_mutex_unlock(lock_of(rs->fd));
	return 0;
}

struct rsock *table_get(int fd)
{
	struct block *block = block_of(fd);
	struct rsock *rs;

	if (!block)
		return NULL;
	pthread_mutex_lock(lock_of(fd));
	rs = block->at[fd % BLOCK_SIZE];
	if (rs)
		rsock_get(rs);
	pthread_mutex_unlock(lock_of(fd));
	return rs;
}

struct rsock *table_take(int fd)
{
	struct block *block = block_of(fd);
	struct rsock *rs;

	if (!block)
		return NULL;
	pthread_mutex_lock(lock_of(fd));
	rs = block->at[fd % BLOCK_SIZE];
	block->at[fd % BLOCK_SIZE] = NULL;
	pthread_mutex_unlock(lock_of(fd));
	return rs;
}

void table_after_fork(void)
{
	for (int i = 0; i < N_LOCKS; i++)
		pthread_mutex_init(&locks[i], NULL);
	for (int i = 0; i < N_BLOCKS; i++)
		for (int j = 0; blocks[i] && j < BLOCK_SIZE; j++)
			blocks[i]->at[j] = NULL;
}
