/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Pools: see pool.h.
 */
#include "base/pool.h"

#include <string.h>

void *pool_take(struct pool *pool)
{
	void *object;

	pthread_mutex_lock(&pool->lock);
	if (!pool->slab.object_bytes)
		slab_init(&pool->slab, pool->bytes);
	object = slab_take(&pool->slab);
	pthread_mutex_unlock(&pool->lock);
	if (object)
		memset(object, 0, pool->bytes);
	return object;
}

void pool_give(struct pool *pool, void *object)
{
	pthread_mutex_lock(&pool->lock);
	slab_give(&pool->slab, object);
	pthread_mutex_unlock(&pool->lock);
}

void pool_after_fork(struct pool *pool)
{
	pthread_mutex_init(&pool->lock, NULL);
	pool->slab = (struct slab){ 0 };
}
