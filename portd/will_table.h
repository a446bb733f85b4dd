/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where the wills lie: in chunks that never move, free ones in a list, found by three tables of
 * indices whose buckets grow, and in a list a client. Called by will.c only, which knows what a
 * will means.
 */
#ifndef PORTD_WILL_TABLE_H
#define PORTD_WILL_TABLE_H

#include "cm/index.h"
#include "portd/will.h"

struct will_client {
	uint32_t first;
	uint32_t count;
};

struct wills {
	uint64_t secret;
	struct will **chunk;
	uint32_t n_chunks;
	uint32_t n_chunks_max; /* room for so many pointers */
	uint32_t free;	       /* by client_next */
	uint32_t n_wills;
	uint32_t n_buckets; /* of each table; a power of two */
	uint32_t *buckets;  /* one table after the other */
	struct will_client *client;
	uint32_t n_clients;
};

/** will_add() - an empty one of a client, in no table. Return: NULL when out of memory. */
struct will *will_add(struct wills *wills, uint16_t client);

/** will_remove() - out of all tables and of its client's list. */
void will_remove(struct wills *wills, struct will *will);

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
