/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A hash table with intrusive nodes. The owner hashes its keys, with a secret where a peer chooses
 * them, and compares the keys of the nodes that share a hash. Nodes are chained in buckets, whose
 * number is the owner's choice: as many as nodes for little memory, four times as many where each
 * node in the way is a cache miss that counts. Only hash_reserve() allocates.
 */
#ifndef BASE_HASH_H
#define BASE_HASH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"

#define HASH_IS_IN (UINT64_C(1) << 63)

/* Zeroed, it is in no table. */
struct hash_node {
	struct hash_node *next; /* in its bucket */
	uint64_t hash;		/* with HASH_IS_IN; 0 while it is in no table */
};

struct hash {
	struct hash_node **bucket;
	size_t n_buckets; /* a power of two */
	size_t n_nodes;
};

/** hash_init() - an empty table. Return: 0 or -ENOMEM, and then hash_fini() is allowed. */
int hash_init(struct hash *table, size_t n_buckets);

/** hash_fini() - free the buckets; the nodes are their owners'. Zeroed, there are none. */
void hash_fini(struct hash *table);

/** hash_reserve() - have at least @n_buckets. Return: 0, or -ENOMEM and nothing has changed. */
int hash_reserve(struct hash *table, size_t n_buckets);

/** hash_insert() - add a node that is in no table; it is found before others of its hash. */
void hash_insert(struct hash *table, struct hash_node *node, uint64_t hash);

/** hash_remove() - take a node out; harmless if it is in no table. */
void hash_remove(struct hash *table, struct hash_node *node);

/** hash_is_in() - is the node in a table? */
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

/** hash_first() - the node with this hash that was inserted last, or NULL. */
static inline struct hash_node *hash_first(const struct hash *table, uint64_t hash)
{
	const struct hash_node before = { table->bucket[hash & (table->n_buckets - 1)],
					  hash | HASH_IS_IN };

	return hash_next(&before);
}

#define hash_for_each_match(node, table, hash) \
	for ((node) = hash_first(table, hash); (node); (node) = hash_next(node))

/* Visit the structs that contain the nodes, as list_for_each_entry() does. */
#define hash_for_each_match_entry(entry, table, hash, member)                            \
	for (struct hash_node *entry##_node = hash_first(table, hash);                   \
	     entry##_node &&                                                             \
	     ((entry) = container_of(entry##_node, __typeof__(*(entry)), member), true); \
	     entry##_node = hash_next(entry##_node))

/**
 * hash_after() - go through all nodes, in no order
 * @node: NULL to begin
 *
 * Return: the next one, or NULL; it stays the next if @node is removed.
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

/** hash_set_secret() - have hash_bytes() depend on it, before any table does on hash_bytes(). */
void hash_set_secret(uint64_t random);

/** hash_bytes() - a hash of which all bytes count in all bits. Who chooses keys can choose some
 * that collide, unless there is a secret that he does not know. */
uint64_t hash_bytes(const void *key, size_t bytes);

#endif
