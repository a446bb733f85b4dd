/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A chained hash table with intrusive nodes. Called by the core only.
 */
#include "cm/index.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define BUCKETS_MIN  64
#define SIDE_BY_SIDE 8 /* pointers in a line of the cache */
#define NODES_SHARE  4 /* so few nodes a bucket: each one in the way is a cache miss */

static uint64_t product(uint32_t a, uint32_t b, uint64_t secret)
{
	return (uint64_t)(a + (uint32_t)secret) * (b + (uint32_t)(secret >> 32));
}

/*
 * Products of sums of a word and a part of the secret, as in UMAC: who does not know that cannot
 * choose words that collide. They do not wait for each other, which a look-up would for rounds.
 *
 * Ids that follow each other, as those of a host's connections do, are in buckets side by side,
 * so that most find theirs in the cache. Who chooses others gains a factor of eight at most.
 */
uint64_t cm_key_hash(const struct cm_key *key, uint64_t secret)
{
	uint64_t hash;
	uint32_t gid[4];

	memcpy(gid, key->gid.raw, sizeof(gid));
	hash = product(gid[0], gid[1], secret * UINT64_C(0x9e3779b97f4a7c15)) +
	       product(gid[2], gid[3], secret * UINT64_C(0xd6e8feb86659fd93)) +
	       product((uint32_t)key->guid, (uint32_t)(key->guid >> 32),
		       secret * UINT64_C(0xd1342543de82ef95)) +
	       product(key->id / SIDE_BY_SIDE, 0, secret * UINT64_C(0x94d049bb133111eb));
	hash = (hash ^ hash >> 32) * UINT64_C(0xbf58476d1ce4e5b9);
	hash ^= hash >> 32;
	return hash ^ key->id % SIDE_BY_SIDE;
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
