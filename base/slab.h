/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Objects of one size, taken from the heap many at a time. A thread other than the program's first
 * has a heap that grows by a page and a system call each time: a burst of connections spent more
 * on that than on the protocol. Used for connections (core.c), ids and events (lib/id/id.c).
 *
 * Whoever owns a slab guards it. Objects are not cleared.
 */
#ifndef BASE_SLAB_H
#define BASE_SLAB_H

#include <stddef.h>

#include "base/list.h"

/* What looks for uses after free must see each object come and go: then nothing is kept. */
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
	struct list chunks; /* those with free objects first */
	unsigned int n_free;
};

/** slab_init() - an empty slab; it has no memory until the first slab_take(). */
void slab_init(struct slab *slab, size_t object_bytes);

/** slab_fini() - give all memory back, that of objects still in use, too; of all zeros, none. */
void slab_fini(struct slab *slab);

/** slab_take() - Return: an object, or NULL when out of memory. */
void *slab_take(struct slab *slab);

/**
 * slab_give() - give an object back; NULL is allowed
 *
 * A chunk of which nothing is used any more goes back to the heap, but for one.
 */
void slab_give(struct slab *slab, void *object);

#endif
