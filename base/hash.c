/* SPDX-License-Identifier: BSD-2-Clause */
/* Buckets of singly linked nodes that store their hash: see hash.h. */
#include "base/hash.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

static struct hash_node **bucket_of(const struct hash *table, uint64_t hash)
{
	return &table->bucket[hash & (table->n_buckets - 1)];
}

/* Reverses a bucket's chain. Return: its new head. */
static struct hash_node *reverse_chain(struct hash_node *node)
{
	struct hash_node *reversed = NULL, *next;

	for (; node; node = next) {
		next = node->next;
		node->next = reversed;
		reversed = node;
	}
	return reversed;
}

static void prepend_to_bucket(const struct hash *table, struct hash_node *node)
{
	struct hash_node **bucket = bucket_of(table, node->hash);

	node->next = *bucket;
	*bucket = node;
}

int hash_init(struct hash *table, size_t n_buckets)
{
	*table = (struct hash){ 0 };
	return hash_reserve(table, n_buckets);
}

void hash_fini(struct hash *table)
{
	free(table->bucket);
	*table = (struct hash){ 0 };
}

int hash_reserve(struct hash *table, size_t n_buckets)
{
	struct hash grown = { .n_buckets = 1, .n_nodes = table->n_nodes };
	struct hash_node *node, *next;
	size_t i;

	if (n_buckets <= table->n_buckets)
		return 0;
	while (grown.n_buckets < n_buckets)
		grown.n_buckets *= 2;
	grown.bucket = calloc(grown.n_buckets, sizeof(struct hash_node *));
	if (!grown.bucket)
		return -ENOMEM;
	/* Oldest first, to keep the order of nodes with the same hash. */
	for (i = 0; i < table->n_buckets; i++) {
		for (node = reverse_chain(table->bucket[i]); node; node = next) {
			next = node->next;
			prepend_to_bucket(&grown, node);
		}
	}
	free(table->bucket);
	*table = grown;
	return 0;
}

void hash_insert(struct hash *table, struct hash_node *node, uint64_t hash)
{
	assert(!hash_is_in(node));

	node->hash = hash | HASH_IS_IN;
	prepend_to_bucket(table, node);
	table->n_nodes++;
}

void hash_remove(struct hash *table, struct hash_node *node)
{
	struct hash_node **link;

	if (!hash_is_in(node))
		return;
	link = bucket_of(table, node->hash);
	while (*link != node)
		link = &(*link)->next;
	*link = node->next;
	node->hash = 0;
	table->n_nodes--;
}

struct hash_node *hash_after(const struct hash *table, const struct hash_node *node)
{
	size_t i = node ? (node->hash & (table->n_buckets - 1)) + 1 : 0;

	if (node && node->next)
		return node->next;
	while (i < table->n_buckets && !table->bucket[i])
		i++;
	return i < table->n_buckets ? table->bucket[i] : NULL;
}

uint64_t hash_secret;

void hash_set_secret(uint64_t random)
{
	__atomic_store_n(&hash_secret, random, __ATOMIC_RELAXED);
}
