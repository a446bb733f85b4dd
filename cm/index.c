/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A chained hash table with intrusive nodes. Called by the core only.
 */
#include "cm/index.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define BUCKETS_MIN 64
#define NODES_SHARE 4 /* so few nodes a bucket: each one in the way is a cache miss */

/* 64 by 64 bits, both halves of the product in one word. */
static uint64_t fold(uint64_t a, uint64_t b)
{
#ifdef __SIZEOF_INT128__
	unsigned __int128 product = (unsigned __int128)a * b;

	return (uint64_t)product ^ (uint64_t)(product >> 64);
#else
	uint64_t low = (a & UINT32_MAX) * (b & UINT32_MAX), high = (a >> 32) * (b >> 32);
	uint64_t cross = (a >> 32) * (b & UINT32_MAX) ^ (a & UINT32_MAX) * (b >> 32);

	return low ^ high ^ (cross << 32 | cross >> 32);
#endif
}

/* Products of sums of a word and a part of the secret: who does not know that cannot choose words
 * that collide. The two products, and the one that joins them, are all that a look-up waits for. */
uint64_t cm_key_hash(const struct cm_key *key, uint64_t secret)
{
	uint64_t half[2];

	memcpy(half, key->gid.raw, sizeof(half));
	half[0] = fold(half[0] + secret, half[1] + secret * UINT64_C(0x9e3779b97f4a7c15));
	half[1] = fold(key->guid + secret * UINT64_C(0xd6e8feb86659fd93),
		       key->id + secret * UINT64_C(0xd1342543de82ef95));
	return fold(half[0] ^ half[1], UINT64_C(0xbf58476d1ce4e5b9));
}

static bool key_equal(const struct cm_key *a, const struct cm_key *b)
{
	return a->id == b->id && a->guid == b->guid &&
	       memcmp(&a->gid, &b->gid, sizeof(a->gid)) == 0;
}

static struct cm_node **bucket_of(const struct cm_index *index, uint64_t hash)
{
	return &index->bucket[hash & (index->n_buckets - 1)];
}

static void hang(struct cm_node **link, struct cm_node *node)
{
	node->next = *link;
	if (node->next)
		node->next->link = &node->next;
	node->link = link;
	*link = node;
}

int cm_index_init(struct cm_index *index, uint64_t secret)
{
	*index = (struct cm_index){ .secret = secret };
	return cm_index_reserve(index, 1);
}

void cm_index_fini(struct cm_index *index)
{
	free(index->bucket);
	*index = (struct cm_index){ 0 };
}

int cm_index_reserve(struct cm_index *index, size_t n_nodes)
{
	struct cm_index grown = *index;
	struct cm_node *node, *next;
	size_t i;

	if (n_nodes <= index->n_buckets / NODES_SHARE)
		return 0;
	grown.n_buckets = index->n_buckets ? index->n_buckets : BUCKETS_MIN;
	while (grown.n_buckets / NODES_SHARE < n_nodes)
		grown.n_buckets *= 2;
	grown.bucket = calloc(grown.n_buckets, sizeof(struct cm_node *));
	if (!grown.bucket)
		return -ENOMEM;
	for (i = 0; i < index->n_buckets; i++) {
		for (node = index->bucket[i]; node; node = next) {
			next = node->next;
			hang(bucket_of(&grown, node->hash), node);
		}
	}
	free(index->bucket);
	*index = grown;
	return 0;
}

void cm_index_insert(struct cm_index *index, struct cm_node *node, const struct cm_key *key)
{
	assert(!node->link);

	node->key = *key;
	node->hash = cm_key_hash(key, index->secret);
	hang(bucket_of(index, node->hash), node);
	index->n_nodes++;
}

void cm_index_remove(struct cm_index *index, struct cm_node *node)
{
	if (!node->link)
		return;
	*node->link = node->next;
	if (node->next)
		node->next->link = node->link;
	node->link = NULL;
	node->next = NULL;
	index->n_nodes--;
}

struct cm_node *cm_index_find(const struct cm_index *index, const struct cm_key *key)
{
	uint64_t hash = cm_key_hash(key, index->secret);
	struct cm_node *node = *bucket_of(index, hash);

	while (node && (node->hash != hash || !key_equal(&node->key, key)))
		node = node->next;
	return node;
}
