/* SPDX-License-Identifier: BSD-2-Clause */
/* Hashes connection keys with a secret, and compares them: see index.h. */
#include "cm/index.h"

#include <string.h>

#include "base/list.h"

#define BUCKETS_MIN  64
#define SIDE_BY_SIDE 8 /* pointers per cache line */

static uint64_t hash_product(uint32_t a, uint32_t b, uint64_t secret)
{
	return (uint64_t)(a + (uint32_t)secret) * (b + (uint32_t)(secret >> 32));
}

/*
 * Products of sums of a word and a part of the secret, as in UMAC: without the secret a peer cannot
 * choose colliding words. The products are independent of each other, unlike the rounds of a block
 * hash, so a lookup does not stall.
 *
 * Consecutive ids, such as those of one host's connections, land in adjacent buckets, so that most
 * lookups hit the cache. A peer that chooses its ids gains a factor of eight at most.
 */
uint64_t cm_key_hash(const struct cm_key *key, uint64_t secret)
{
	uint64_t hash =
		hash_product(key->id / SIDE_BY_SIDE, 0, secret * UINT64_C(0x94d049bb133111eb));
	uint64_t half[2];

	memcpy(half, key->gid.raw, sizeof(half));
	/* Local keys have neither GID nor GUID, and others often have no GUID. */
	if (half[0] | half[1])
		hash += hash_product((uint32_t)half[0], (uint32_t)(half[0] >> 32),
				     secret * UINT64_C(0x9e3779b97f4a7c15)) +
			hash_product((uint32_t)half[1], (uint32_t)(half[1] >> 32),
				     secret * UINT64_C(0xd6e8feb86659fd93));
	if (key->guid)
		hash += hash_product((uint32_t)key->guid, (uint32_t)(key->guid >> 32),
				     secret * UINT64_C(0xd1342543de82ef95));
	hash = (hash ^ hash >> 32) * UINT64_C(0xbf58476d1ce4e5b9);
	hash ^= hash >> 32;
	return hash ^ key->id % SIDE_BY_SIDE;
}

static bool key_equal(const struct cm_key *a, const struct cm_key *b)
{
	return a->id == b->id && a->guid == b->guid &&
	       memcmp(&a->gid, &b->gid, sizeof(a->gid)) == 0;
}

int cm_index_init(struct cm_index *index, uint64_t secret)
{
	index->secret = secret;
	return hash_init(&index->table, BUCKETS_MIN);
}

void cm_index_insert(struct cm_index *index, struct cm_node *node, const struct cm_key *key)
{
	node->key = *key;
	hash_insert(&index->table, &node->link, cm_key_hash(key, index->secret));
}

struct cm_node *cm_index_find(const struct cm_index *index, const struct cm_key *key)
{
	struct cm_node *node;

	if (!index->table.n_nodes)
		return NULL;
	hash_for_each_match_entry (node, &index->table, cm_key_hash(key, index->secret), link)
		if (key_equal(&node->key, key))
			return node;
	return NULL;
}

struct cm_node *cm_index_next(const struct cm_node *node)
{
	struct hash_node *link;
	struct cm_node *next;

	for (link = hash_next(&node->link); link; link = hash_next(link)) {
		next = container_of(link, struct cm_node, link);
		if (key_equal(&next->key, &node->key))
			return next;
	}
	return NULL;
}
