/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A hash table with intrusive nodes. The owner hashes its keys, with a secret where a peer chooses
 * them, and compares the keys of nodes that share a hash. Nodes are chained in buckets. The owner
 * chooses their number: one per node to save memory, four per node where each extra node in a chain
 * costs a cache miss that matters. Only hash_reserve() allocates.
 */
#ifndef BASE_HASH_H
#define BASE_HASH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/list.h"

#define HASH_IS_IN (UINT64_C(1) << 63)

/* A zeroed node is in no table. */
struct hash_node {
	struct hash_node *next; /* in its bucket */
	uint64_t hash;		/* with HASH_IS_IN; 0 while in no table */
};

struct hash {
	struct hash_node **bucket;
	size_t n_buckets; /* a power of two */
	size_t n_nodes;
};

/** hash_init() - initialise an empty table. Return: 0; -ENOMEM, hash_fini() is allowed. */
int hash_init(struct hash *table, size_t n_buckets);

/** hash_fini() - free the buckets; the nodes belong to their owners. A zeroed table is allowed. */
void hash_fini(struct hash *table);

/** hash_reserve() - grow to at least @n_buckets. Return: 0; -ENOMEM, with nothing changed. */
int hash_reserve(struct hash *table, size_t n_buckets);

/** hash_insert() - insert a node that is in no table, in front of others with the same hash. */
void hash_insert(struct hash *table, struct hash_node *node, uint64_t hash);

/** hash_remove() - remove a node; no effect if it is in no table. */
void hash_remove(struct hash *table, struct hash_node *node);

/** hash_is_in() - true if the node is in a table. */
static inline bool hash_is_in(const struct hash_node *node)
{
	return node->hash;
}

/** hash_next() - the next node with the same hash, or NULL. */
static inline struct hash_node *hash_next(const struct hash_node *node)
{
	struct hash_node *next = node->next;

	while (next && next->hash != node->hash)
		next = next->next;
	return next;
}

/** hash_first() - the most recently inserted node with this hash, or NULL. */
static inline struct hash_node *hash_first(const struct hash *table, uint64_t hash)
{
	const struct hash_node before = { table->bucket[hash & (table->n_buckets - 1)],
					  hash | HASH_IS_IN };

	return hash_next(&before);
}

#define hash_for_each_match(node, table, hash) \
	for ((node) = hash_first(table, hash); (node); (node) = hash_next(node))

/* Visit the structs that contain the nodes, like list_for_each_entry(). */
#define hash_for_each_match_entry(entry, table, hash, member)                            \
	for (struct hash_node *entry##_node = hash_first(table, hash);                   \
	     entry##_node &&                                                             \
	     ((entry) = container_of(entry##_node, __typeof__(*(entry)), member), true); \
	     entry##_node = hash_next(entry##_node))

/**
 * hash_after() - iterate over all nodes, in no particular order
 * @node: the current node; NULL to start
 *
 * Return: the next node, or NULL; it is still the next one after @node is removed.
 */
struct hash_node *hash_after(const struct hash *table, const struct hash_node *node);

#define hash_for_each_safe(node, after, table)                                                    \
	for ((node) = hash_after(table, NULL), (after) = (node) ? hash_after(table, node) : NULL; \
	     (node); (node) = (after), (after) = (node) ? hash_after(table, node) : NULL)

#define hash_for_each_entry_safe(entry, table, member)                                  \
	for (struct hash_node * entry##_next, *entry##_node = hash_after(table, NULL);  \
	     entry##_node &&                                                            \
	     (entry##_next = hash_after(table, entry##_node),                           \
	     (entry) = container_of(entry##_node, __typeof__(*(entry)), member), true); \
	     entry##_node = entry##_next)

/** hash_set_secret() - key hash_bytes(); call before any table uses hash_bytes(). */
void hash_set_secret(uint64_t random);

extern uint64_t hash_secret; /* of hash_set_secret(); atomic */

/**
 * hash_bytes() - hash a byte string; every byte affects all bits. Without a secret, chosen keys can
 * collide.
 *
 * FNV-1a over words instead of bytes, for speed; the last rounds mix high bits into low ones. It is
 * inline because most keys have a constant size, for which no loop is left.
 */
static inline uint64_t hash_bytes(const void *key, size_t bytes)
{
	const uint64_t prime = UINT64_C(0x100000001b3);
	uint64_t hash = UINT64_C(0xcbf29ce484222325) ^
			__atomic_load_n(&hash_secret, __ATOMIC_RELAXED);
	const uint8_t *next = key;
	uint32_t word;

	for (; bytes >= sizeof(word); next += sizeof(word), bytes -= sizeof(word)) {
		memcpy(&word, next, sizeof(word));
		hash = (hash ^ word) * prime;
	}
	if (bytes) {
		word = 0;
		memcpy(&word, next, bytes);
		hash = (hash ^ word) * prime;
	}
	hash = (hash ^ hash >> 32) * UINT64_C(0xd6e8feb86659fd93);
	return hash ^ hash >> 32;
}

#endif
