/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where the wills lie: in chunks that never move, free ones in a list, found by three tables of
 * indices whose buckets grow, and in a list a client. Called by will.c only, which knows what a
 * will means.
 */
#ifndef LIB_PORTD_SERVER_WILL_TABLE_H
#define LIB_PORTD_SERVER_WILL_TABLE_H

#include <stdatomic.h>

#include "cm/index.h"
#include "lib/portd/server/will.h"

#define WILL_SEAL UINT32_C(0x77696c6c)

struct will_client {
	uint32_t first;
	uint32_t count;
	struct will_owner owner;
};

struct wills {
	uint64_t secret;
	struct will **chunk;
	uint32_t n_chunks;
	uint32_t n_chunks_max; /* room for so many pointers */
	uint32_t n_stored;     /* the first ones: in the store */
	uint32_t free;	       /* by client_next */
	uint32_t n_wills;
	uint32_t n_buckets; /* of each table; a power of two */
	uint32_t *buckets;  /* one table after the other */
	struct will_client *client;
	uint32_t n_clients;
	struct will_client dead;    /* as a client: of those gone, who are being disconnected */
	struct will_client orphans; /* and of those who may come back */
	struct will_store *store;   /* NULL: they do not outlive us */
};

/**
 * will_unseal() - more of it than a store can write is about to change
 *
 * Only the order of the compiler has to be kept: what a killed process has stored is seen in its
 * order by those who come later.
 */
static inline void will_unseal(struct will *will)
{
	will->seal = 0;
	atomic_signal_fence(memory_order_seq_cst);
}

/** will_seal() - it is whole. */
static inline void will_seal(struct will *will)
{
	atomic_signal_fence(memory_order_seq_cst);
	will->seal = WILL_SEAL ^ will->index;
}

/** will_at() - by its index; NULL for WILL_NONE. */
struct will *will_at(const struct wills *wills, uint32_t index);

/** will_has_client() - have a list for a client. Return: false when out of memory. */
bool will_has_client(struct wills *wills, uint16_t client);

/** will_add() - an empty one of a client, in no table. Return: NULL when out of memory. */
struct will *will_add(struct wills *wills, uint16_t client);

/** will_remove() - out of all tables and of its client's list. */
void will_remove(struct wills *wills, struct will *will);

/** will_bury() - to the dead: is in no table but that of its comm id. */
void will_bury(struct wills *wills, struct will *will);

/** will_hand_over() - an orphan, not dead, is a client's again, who has a list. */
void will_hand_over(struct wills *wills, struct will *orphan, uint16_t client);

/* Return: is what is in a chunk a will, its own part and its index only looked at? */
typedef bool will_looker(const struct wills *wills, struct will *will);

/**
 * will_adopt_chunks() - use the chunks of the store, in which anything may be
 * @look: is asked of all that has a seal; what it says yes to is an orphan
 *
 * Return: false when out of memory; then the first ones are in use.
 */
bool will_adopt_chunks(struct wills *wills, will_looker *look);

/** will_forget_chunks() - there is no will in any; all are of the store. */
void will_forget_chunks(struct wills *wills);

/**
 * will_place() - put it into these tables and take it out of the others
 * @tables: a bit for each; what makes up their keys must not change while it is in them
 */
void will_place(struct wills *wills, struct will *will, unsigned int tables);

/**
 * will_find() - go through what has a key
 * @after: the one found before, or NULL
 * @key:   its GUID is not looked at if it is 0
 *
 * Return: the next one, or NULL.
 */
struct will *will_find(const struct wills *wills, enum will_table table, const struct will *after,
		       const struct cm_key *key);

#endif
