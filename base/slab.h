/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Objects of one size, allocated from the heap in chunks. In threads other than the first, malloc
 * grows its heap page by page with a system call each: bursts of connections spent more time there
 * than on the protocol. Used for connections (core.c), ids and events (lib/id/id.c).
 *
 * The owner of a slab does the locking. Objects are not zeroed.
 */
#ifndef BASE_SLAB_H
#define BASE_SLAB_H

#include <stddef.h>

#include "base/list.h"

/* Memory checkers must see each allocation and free: allocate objects one by one then. */
#if defined(__has_feature)
#define SLAB_HAS_FEATURE(name) __has_feature(name)
#else
#define SLAB_HAS_FEATURE(name) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || SLAB_HAS_FEATURE(address_sanitizer)
#define SLAB_ONE_BY_ONE 1
#else
#define SLAB_ONE_BY_ONE 0
#endif

struct slab {
	size_t object_bytes;
	struct list chunks; /* chunks with free objects first */
	unsigned int n_free;
};

/** slab_init() - initialise an empty slab; allocates nothing. */
void slab_init(struct slab *slab, size_t object_bytes);

/** slab_fini() - free all memory, including objects in use. A zeroed slab is allowed. */
void slab_fini(struct slab *slab);

/** slab_take() - allocate an object. Return: NULL when out of memory. */
void *slab_take(struct slab *slab);

/**
 * slab_give() - free an object; NULL is allowed
 *
 * Unused chunks go back to the heap, except one.
 */
void slab_give(struct slab *slab, void *object);

#endif
