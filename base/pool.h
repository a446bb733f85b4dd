/* SPDX-License-Identifier: BSD-2-Clause */
/* A slab with a lock: objects of one size that any thread allocates and frees. */
#ifndef BASE_POOL_H
#define BASE_POOL_H

#include <pthread.h>

#include "base/slab.h"

struct pool {
	pthread_mutex_t lock;
	struct slab slab; /* object_bytes is 0 until the first pool_take() */
	size_t bytes;
};

#define POOL_OF(object_bytes)                                              \
	{                                                                  \
		.lock = PTHREAD_MUTEX_INITIALIZER, .bytes = (object_bytes) \
	}

/** pool_take() - allocate a zeroed object. Return: NULL when out of memory. */
void *pool_take(struct pool *pool);

/** pool_give() - free an object; NULL is allowed. */
void pool_give(struct pool *pool, void *object);

/** pool_after_fork() - in a forked child, start empty; the parent's objects remain in place. */
void pool_after_fork(struct pool *pool);

#endif
