/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Objects of one size: see slab.h. A word in front of each object points to its chunk, or to the
 * next free object while this one is free.
 */
#include "base/slab.h"

#include <assert.h>
#include <stdbool.h>
#include <stdlib.h>

#define CHUNK_BYTES 65536
#define FIRST_BYTES 2048 /* many processes have one connection; then slabs share pages */

struct chunk;

struct slot {
	union {
		struct chunk *chunk;
		struct slot *next;
	};
	_Alignas(max_align_t) char object[];
};

struct chunk {
	struct list link;
	struct slot *free;
	unsigned int n_used;
	unsigned int n_slots;
	unsigned int n_touched; /* slots beyond were never used and are in no list */
	_Alignas(max_align_t) char slots[];
};

static size_t slot_bytes(const struct slab *slab)
{
	size_t align = _Alignof(max_align_t);

	return sizeof(struct slot) + (slab->object_bytes + align - 1) / align * align;
}

void slab_init(struct slab *slab, size_t object_bytes)
{
	*slab = (struct slab){ .object_bytes = object_bytes };
	list_init(&slab->chunks);
}

static void chunk_free(struct slab *slab, struct chunk *chunk)
{
	slab->n_free -= chunk->n_slots - chunk->n_used;
	list_remove(&chunk->link);
	free(chunk);
}

void slab_fini(struct slab *slab)
{
	struct chunk *chunk;

	if (!slab->object_bytes) /* slab_init() was never called */
		return;
	list_for_each_entry_safe (chunk, &slab->chunks, link)
		chunk_free(slab, chunk);
}

static struct chunk *chunk_new(struct slab *slab)
{
	size_t bytes = slot_bytes(slab);
	size_t room = list_is_empty(&slab->chunks) ? FIRST_BYTES : CHUNK_BYTES;
	unsigned int n = SLAB_ONE_BY_ONE ? 1 : (unsigned int)(room / bytes);
	struct chunk *chunk;

	if (n == 0)
		n = 1;
	chunk = malloc(sizeof(*chunk) + n * bytes);
	if (!chunk)
		return NULL;
	*chunk = (struct chunk){ .n_slots = n };
	slab->n_free += n;
	list_prepend(&slab->chunks, &chunk->link);
	return chunk;
}

static bool is_full(const struct chunk *chunk)
{
	return chunk->n_used == chunk->n_slots;
}

/* Touch no page before it is needed: many processes have only one id. */
static struct slot *take_slot(const struct slab *slab, struct chunk *chunk)
{
	struct slot *slot = chunk->free;

	if (!slot)
		return (struct slot *)(chunk->slots + chunk->n_touched++ * slot_bytes(slab));
	chunk->free = slot->next;
	return slot;
}

void *slab_take(struct slab *slab)
{
	struct chunk *chunk = slab->n_free ? container_of(slab->chunks.next, struct chunk, link)
					   : chunk_new(slab);
	struct slot *slot;

	if (!chunk)
		return NULL;
	slot = take_slot(slab, chunk);
	slot->chunk = chunk;
	chunk->n_used++;
	slab->n_free--;
	if (is_full(chunk)) {
		list_remove(&chunk->link);
		list_append(&slab->chunks, &chunk->link);
	}
	return slot->object;
}

void slab_give(struct slab *slab, void *object)
{
	struct slot *slot;
	struct chunk *chunk;

	if (!object)
		return;
	slot = (struct slot *)((char *)object - offsetof(struct slot, object));
	chunk = slot->chunk;
	assert(chunk->n_used);
	if (is_full(chunk)) {
		list_remove(&chunk->link);
		list_prepend(&slab->chunks, &chunk->link);
	}
	slot->next = chunk->free;
	chunk->free = slot;
	chunk->n_used--;
	slab->n_free++;
	if (chunk->n_used == 0 && (SLAB_ONE_BY_ONE || slab->n_free > chunk->n_slots))
		chunk_free(slab, chunk);
}
