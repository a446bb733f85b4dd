/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where the tracked connections lie: in chunks that never move, free ones in a list, found by three
 * tables of indices whose buckets grow, and in a list a client.
 */
#ifndef LIB_PORTD_SERVER_TRACKED_TABLE_H
#define LIB_PORTD_SERVER_TRACKED_TABLE_H

#include <stdatomic.h>

#include "cm/index.h"
#include "lib/portd/server/tracked.h"

#define TRACKED_SEAL UINT32_C(0x77696c6c)

struct tracked_client {
	uint32_t first;
	uint32_t count;
	uint32_t *shared;  /* a count of several clients, or NULL */
	uint32_t n_handed; /* messages, modulo 2^32 */
	struct tracked_owner owner;
};

struct tracker {
	uint64_t secret;
	struct tracked **chunk;
	uint32_t n_chunks;
	uint32_t n_chunks_max; /* room for so many pointers */
	uint32_t n_stored;     /* the first ones: in the store */
	uint32_t free;	       /* by client_next */
	uint32_t n_tracked;
	uint32_t n_buckets; /* of each table; a power of two */
	uint32_t *buckets;  /* one table after the other */
	struct tracked_client *client;
	uint32_t n_clients;
	struct tracked_client dead;    /* as a client: of those gone, who are being disconnected */
	struct tracked_client orphans; /* and of those who may come back */
	uint32_t *left_behind;	       /* how many of both have a comm id of each block ... */
	uint32_t *dead_of;	       /* ... and how many dead are of each user */
	struct tracked_store *store;   /* NULL: they do not outlive us */
};

/**
 * tracked_unseal() - more of it than a store can write is about to change
 *
 * Only the order of the compiler has to be kept: what a killed process has stored is seen in its
 * order by those who come later.
 */
static inline void tracked_unseal(struct tracked *tracked)
{
	tracked->seal = 0;
	atomic_signal_fence(memory_order_seq_cst);
}

/** tracked_seal() - it is whole. */
static inline void tracked_seal(struct tracked *tracked)
{
	atomic_signal_fence(memory_order_seq_cst);
	tracked->seal = TRACKED_SEAL ^ tracked->index;
}

/** tracked_at() - by its index; NULL for TRACKED_NONE. */
struct tracked *tracked_at(const struct tracker *tracker, uint32_t index);

/** tracked_has_client() - have a list for a client. Return: false when out of memory. */
bool tracked_has_client(struct tracker *tracker, uint16_t client);

/** tracked_add() - an empty one of a client, in no table. Return: NULL when out of memory. */
struct tracked *tracked_add(struct tracker *tracker, uint16_t client);

/** tracked_remove() - out of all tables and of its client's list. */
void tracked_remove(struct tracker *tracker, struct tracked *tracked);

/** tracked_reap() - to the dead: is in no table but that of its comm id. */
void tracked_reap(struct tracker *tracker, struct tracked *tracked);

/** tracked_hand_over() - an orphan, not dead, is a client's again, who has a list. */
void tracked_hand_over(struct tracker *tracker, struct tracked *orphan, uint16_t client);

/* Return: is what is in a chunk a tracked connection, its own part and its index only looked at? */
typedef bool tracked_looker(const struct tracker *tracker, struct tracked *tracked);

/**
 * tracked_adopt_chunks() - use the chunks of the store, in which anything may be
 * @look: is asked of all that has a seal; what it says yes to is an orphan
 *
 * Return: false when out of memory; then the first ones are in use.
 */
bool tracked_adopt_chunks(struct tracker *tracker, tracked_looker *look);

/** tracked_forget_chunks() - there is no tracked connection in any; all are of the store. */
void tracked_forget_chunks(struct tracker *tracker);

/**
 * tracked_index() - put it into these tables and take it out of the others
 * @tables: a bit for each; what makes up their keys must not change while it is in them
 */
void tracked_index(struct tracker *tracker, struct tracked *tracked, unsigned int tables);

/**
 * tracked_find() - go through what has a key
 * @after: the one found before, or NULL
 * @key:   its GUID is not looked at if it is 0
 *
 * Return: the next one, or NULL.
 */
struct tracked *tracked_find(const struct tracker *tracker, enum tracked_table table,
			     const struct tracked *after, const struct cm_key *key);

#endif
