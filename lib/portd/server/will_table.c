/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where the wills lie: see will_table.h.
 */
#include "lib/portd/server/will_table.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "cm/action.h"
#include "lib/portd/server/will_store.h"

#define BUCKETS_MIN 64
#define CLIENTS_MIN 16

_Static_assert(sizeof(struct will) <= 128, "a connection costs less than 256 bytes in all");

struct will *will_at(const struct wills *wills, uint32_t index)
{
	return index == WILL_NONE ? NULL : &wills->chunk[index / WILL_CHUNK][index % WILL_CHUNK];
}

/* --- tables -------------------------------------------------------------- */

static struct cm_key key_of(const struct will *will, enum will_table table)
{
	struct cm_key key = { .id = will->is.local_comm_id };

	if (table == WILL_BY_LOCAL)
		return key;
	key.gid = cm_peer_gid(&will->is.path);
	key.guid = will->is.remote_ca_guid;
	key.id = table == WILL_BY_QPN ? will->is.remote_qpn : will->is.remote_comm_id;
	return key;
}

/* The GUID is left out, as it is not always known to who asks. */
static uint32_t *bucket_of(const struct wills *wills, enum will_table table,
			   const struct cm_key *key)
{
	struct cm_key hashed = { .gid = key->gid, .id = key->id };
	uint64_t hash = cm_key_hash(&hashed, wills->secret);

	return &wills->buckets[table * (size_t)wills->n_buckets + (hash & (wills->n_buckets - 1))];
}

static void link_in(struct wills *wills, enum will_table table, struct will *will)
{
	struct cm_key key = key_of(will, table);
	uint32_t *bucket = bucket_of(wills, table, &key);

	will->next[table] = *bucket;
	*bucket = will->index;
	will->in |= (uint8_t)(1u << table);
}

static void take_out(struct wills *wills, enum will_table table, struct will *will)
{
	struct cm_key key = key_of(will, table);
	uint32_t *link = bucket_of(wills, table, &key);

	while (*link != will->index) {
		assert(*link != WILL_NONE); /* or its key was changed while it was in */
		link = &will_at(wills, *link)->next[table];
	}
	*link = will->next[table];
	will->in &= (uint8_t) ~(1u << table);
}

void will_place(struct wills *wills, struct will *will, unsigned int tables)
{
	enum will_table table;

	for (table = WILL_BY_LOCAL; table < WILL_N_TABLES; table++) {
		if ((will->in ^ tables) >> table & 1) {
			if (tables >> table & 1)
				link_in(wills, table, will);
			else
				take_out(wills, table, will);
		}
	}
}

static bool has_key(const struct will *will, enum will_table table, const struct cm_key *key)
{
	struct cm_key its = key_of(will, table);

	return its.id == key->id && (key->guid == 0 || its.guid == key->guid) &&
	       memcmp(&its.gid, &key->gid, sizeof(its.gid)) == 0;
}

struct will *will_find(const struct wills *wills, enum will_table table, const struct will *after,
		       const struct cm_key *key)
{
	struct will *will;

	will = will_at(wills, after ? after->next[table] : *bucket_of(wills, table, key));
	while (will && !has_key(will, table, key))
		will = will_at(wills, will->next[table]);
	return will;
}

/* --- memory -------------------------------------------------------------- */

static void relink_all(struct wills *wills)
{
	enum will_table table;
	uint32_t i;

	for (i = 0; i < wills->n_chunks * WILL_CHUNK; i++)
		for (table = WILL_BY_LOCAL; table < WILL_N_TABLES; table++)
			if (will_at(wills, i)->in >> table & 1)
				link_in(wills, table, will_at(wills, i));
}

static bool grow_buckets(struct wills *wills)
{
	uint32_t n_buckets = wills->n_buckets ? 2 * wills->n_buckets : BUCKETS_MIN;
	size_t bytes = (size_t)n_buckets * WILL_N_TABLES * sizeof(uint32_t);
	uint32_t *buckets = malloc(bytes);

	if (!buckets)
		return false;
	memset(buckets, 0xff, bytes); /* WILL_NONE */
	free(wills->buckets);
	wills->buckets = buckets;
	wills->n_buckets = n_buckets;
	relink_all(wills);
	return true;
}

static bool grow_clients(struct wills *wills, uint16_t client)
{
	uint32_t n = wills->n_clients ? wills->n_clients : CLIENTS_MIN;
	struct will_client *grown;

	while (n <= client)
		n *= 2;
	grown = realloc(wills->client, n * sizeof(struct will_client));
	if (!grown)
		return false;
	for (wills->client = grown; wills->n_clients < n; wills->n_clients++)
		grown[wills->n_clients] = (struct will_client){ .first = WILL_NONE };
	return true;
}

static bool grow_chunk_pointers(struct wills *wills)
{
	uint32_t n = wills->n_chunks_max ? 2 * wills->n_chunks_max : 1;
	struct will **grown = realloc(wills->chunk, n * sizeof(struct will *));

	if (!grown)
		return false;
	wills->chunk = grown;
	wills->n_chunks_max = n;
	return true;
}

static bool grow_wills(struct wills *wills)
{
	struct will *chunk = NULL;
	uint32_t i;

	if (wills->n_chunks == wills->n_chunks_max && !grow_chunk_pointers(wills))
		return false;
	if (wills->store)
		chunk = will_store_grow(wills->store);
	if (chunk)
		wills->n_stored++;
	else
		chunk = calloc(WILL_CHUNK, sizeof(struct will));
	if (!chunk)
		return false;
	for (i = 0; i < WILL_CHUNK; i++) {
		chunk[i].index = wills->n_chunks * WILL_CHUNK + i;
		chunk[i].client_next = i + 1 < WILL_CHUNK ? chunk[i].index + 1 : wills->free;
	}
	wills->chunk[wills->n_chunks++] = chunk;
	wills->free = chunk[0].index;
	return true;
}

bool will_has_client(struct wills *wills, uint16_t client)
{
	return client < wills->n_clients || grow_clients(wills, client);
}

static bool has_room(struct wills *wills, uint16_t client)
{
	return will_has_client(wills, client) &&
	       (wills->n_wills < wills->n_buckets || grow_buckets(wills)) &&
	       (wills->free != WILL_NONE || grow_wills(wills));
}

/* --- lists --------------------------------------------------------------- */

static void join(struct wills *wills, struct will *will, struct will_client *list)
{
	struct will *next = will_at(wills, list->first);

	will->client_prev = WILL_NONE;
	will->client_next = list->first;
	if (next)
		next->client_prev = will->index;
	list->first = will->index;
	list->count++;
}

static struct will_client *list_of(struct wills *wills, const struct will *will)
{
	if (will->is_orphan)
		return &wills->orphans;
	return will->is_dead ? &wills->dead : &wills->client[will->client];
}

static void part(struct wills *wills, struct will *will)
{
	struct will_client *list = list_of(wills, will);
	struct will *next = will_at(wills, will->client_next);
	struct will *prev = will_at(wills, will->client_prev);

	if (next)
		next->client_prev = will->client_prev;
	if (prev)
		prev->client_next = will->client_next;
	else
		list->first = will->client_next;
	list->count--;
}

struct will *will_add(struct wills *wills, uint16_t client)
{
	struct will *will;

	if (!has_room(wills, client))
		return NULL;
	will = will_at(wills, wills->free);
	wills->free = will->client_next;
	*will = (struct will){ .client = client,
			       .index = will->index,
			       .owner = wills->client[client].owner };
	join(wills, will, &wills->client[client]);
	wills->n_wills++;
	return will;
}

static void put_away(struct wills *wills, struct will *will)
{
	will->client_next = wills->free;
	wills->free = will->index;
}

void will_remove(struct wills *wills, struct will *will)
{
	will_unseal(will);
	will_place(wills, will, 0);
	part(wills, will);
	wills->n_wills--;
	put_away(wills, will);
}

/* That it is found by its comm id still, will_find() alone tells; see will_of_local(). */
void will_bury(struct wills *wills, struct will *will)
{
	part(wills, will);
	will_place(wills, will, 1u << WILL_BY_LOCAL);
	will->is_dead = true;
	will->is_orphan = false;
	join(wills, will, &wills->dead);
}

void will_hand_over(struct wills *wills, struct will *orphan, uint16_t client)
{
	part(wills, orphan);
	orphan->is_orphan = false;
	orphan->client = client;
	orphan->owner = wills->client[client].owner;
	join(wills, orphan, &wills->client[client]);
}

/* --- from the store ------------------------------------------------------ */

/* The tables' part of a will is of no use in another process. */
static void take_in(struct wills *wills, struct will *will, uint32_t index, will_looker *look)
{
	will->index = index;
	will->client = 0;
	will->in = 0;
	will->is_refused = will->is_rejected = false;
	if (will->seal != (WILL_SEAL ^ index) || !look(wills, will)) {
		memset(will, 0, sizeof(*will));
		will->index = index;
		put_away(wills, will);
		return;
	}
	will->is_orphan = true;
	join(wills, will, &wills->orphans);
	wills->n_wills++;
	will_place(wills, will, will->is.local_comm_id ? 1u << WILL_BY_LOCAL : 0);
}

bool will_adopt_chunks(struct wills *wills, will_looker *look)
{
	uint32_t n = wills->store->n_chunks, i;

	while (wills->n_chunks < n) {
		if (wills->n_chunks == wills->n_chunks_max && !grow_chunk_pointers(wills))
			return false;
		while (wills->n_buckets < (wills->n_chunks + 1) * WILL_CHUNK)
			if (!grow_buckets(wills))
				return false;
		wills->chunk[wills->n_chunks] = will_store_chunk(wills->store, wills->n_chunks);
		wills->n_chunks++;
		wills->n_stored++;
		for (i = (wills->n_chunks - 1) * WILL_CHUNK; i < wills->n_chunks * WILL_CHUNK; i++)
			take_in(wills, will_at(wills, i), i, look);
	}
	return true;
}

void will_forget_chunks(struct wills *wills)
{
	wills->n_chunks = wills->n_stored = 0;
	wills->free = WILL_NONE;
}

/* --- all of them --------------------------------------------------------- */

struct wills *wills_new(uint64_t secret)
{
	struct wills *wills = calloc(1, sizeof(*wills));

	if (!wills)
		return NULL;
	wills->secret = secret;
	wills->free = WILL_NONE;
	wills->dead.first = wills->orphans.first = WILL_NONE;
	if (!grow_buckets(wills)) {
		free(wills);
		return NULL;
	}
	return wills;
}

void wills_free(struct wills *wills)
{
	uint32_t i;

	if (!wills)
		return;
	for (i = wills->n_stored; i < wills->n_chunks; i++)
		free(wills->chunk[i]);
	will_store_close(wills->store);
	free(wills->chunk);
	free(wills->buckets);
	free(wills->client);
	free(wills);
}

uint32_t wills_count(const struct wills *wills, uint16_t client)
{
	return client < wills->n_clients ? wills->client[client].count : 0;
}

static void port_gone(struct wills *wills, const struct will_client *list, uint8_t port)
{
	struct will *will, *next;

	for (will = will_at(wills, list->first); will; will = next) {
		next = will_at(wills, will->client_next);
		if (will->is.handle == port)
			will_remove(wills, will);
	}
}

void wills_port_gone(struct wills *wills, uint8_t port)
{
	uint32_t i;

	for (i = 0; i < wills->n_clients; i++)
		port_gone(wills, &wills->client[i], port);
	port_gone(wills, &wills->dead, port);
	port_gone(wills, &wills->orphans, port);
}

bool wills_are_none(const struct wills *wills)
{
	return wills->n_wills == 0;
}

size_t wills_bytes(const struct wills *wills)
{
	return sizeof(*wills) + wills->n_chunks * WILL_CHUNK * sizeof(struct will) +
	       wills->n_chunks_max * sizeof(struct will *) +
	       (size_t)wills->n_buckets * WILL_N_TABLES * sizeof(uint32_t) +
	       wills->n_clients * sizeof(struct will_client);
}
