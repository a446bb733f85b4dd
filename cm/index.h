/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Hash tables that find a connection: by local comm id, by the peer's comm id, by the peer's queue
 * pair. Nodes are embedded in the connections; the buckets grow when a connection is created, never
 * while the core steps. The hash is keyed, since peers choose most of a key.
 */
#ifndef CM_INDEX_H
#define CM_INDEX_H

#include "base/hash.h"
#include "mad/cm_msg.h"

#define CM_BUCKETS_A_NODE 4 /* each further node in a bucket is a cache miss */

struct cm_key {
	struct mad_gid gid; /* the peer's; zero for local keys */
	uint64_t guid;	    /* the peer's CA, or a service id */
	uint32_t id;	    /* a comm id or a QPN */
};

struct cm_node {
	struct cm_key key;
	struct hash_node link;
};

struct cm_index {
	struct hash table;
	uint64_t secret;
};

/** cm_key_hash() - hash of a key; unpredictable to peers that do not know @secret. */
uint64_t cm_key_hash(const struct cm_key *key, uint64_t secret);

/** cm_index_init() - initialise an empty index; @secret is random. Return: 0 or -ENOMEM. */
int cm_index_init(struct cm_index *index, uint64_t secret);

/** cm_index_fini() - free the buckets; the nodes belong to their owners. */
static inline void cm_index_fini(struct cm_index *index)
{
	hash_fini(&index->table);
}

/**
 * cm_index_reserve() - allocate buckets for @n_nodes in total. Return: 0; -ENOMEM, nothing changed.
 */
static inline int cm_index_reserve(struct cm_index *index, size_t n_nodes)
{
	return hash_reserve(&index->table, n_nodes * CM_BUCKETS_A_NODE);
}

/** cm_index_insert() - insert a node under a key; it must not be in any index. */
void cm_index_insert(struct cm_index *index, struct cm_node *node, const struct cm_key *key);

/** cm_index_remove() - remove a node; no effect if it is in no index. */
static inline void cm_index_remove(struct cm_index *index, struct cm_node *node)
{
	hash_remove(&index->table, &node->link);
}

/** cm_index_find() - the node with this key that was inserted last, or NULL. */
struct cm_node *cm_index_find(const struct cm_index *index, const struct cm_key *key);

/** cm_index_next() - the node with the same key that was inserted before this one, or NULL. */
struct cm_node *cm_index_next(const struct cm_node *node);

#endif
