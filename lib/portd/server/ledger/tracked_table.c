/* SPDX-License-Identifier: BSD-2-Clause */
/* Storage and lookup of tracked connections: see tracked_table.h. */
#include "lib/portd/server/ledger/tracked_table.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "lib/portd/server/ledger/tracked.h"
#include "lib/portd/server/files/tracked_file.h"

#define BUCKETS_MIN 64
#define CLIENTS_MIN 16

_Static_assert(sizeof(struct tracked) <= 128, "a connection costs less than 256 bytes in all");

struct tracked *tracked_at(const struct tracker *tracker, uint32_t index)
{
	return index == TRACKED_NONE
		       ? NULL
		       : &tracker->chunk[index / TRACKED_CHUNK][index % TRACKED_CHUNK];
}

bool tracked_has_own_qpn(const struct tracked *tracked)
{
	const unsigned int states = TRACKED_IN(REP_RCVD) | TRACKED_IN(MRA_REP_SENT) |
				    TRACKED_IN(REP_SENT) | TRACKED_IN(MRA_REP_RCVD) |
				    TRACKED_IN(ESTABLISHED);

	return tracked->is.local_qpn && tracked_is_in(tracked, states);
}

/* --- tables -------------------------------------------------------------- */

static uint32_t id_of(const struct tracked *tracked, enum tracked_table table)
{
	return table == TRACKED_BY_LOCAL     ? tracked->is.local_comm_id
	       : table == TRACKED_BY_QPN     ? tracked->is.remote_qpn
	       : table == TRACKED_BY_OWN_QPN ? tracked->is.local_qpn
					     : tracked->is.remote_comm_id;
}

/* Without the GUID: see bucket_of(). */
static struct cm_key key_of(const struct tracked *tracked, enum tracked_table table)
{
	struct cm_key key = { .id = id_of(tracked, table) };

	if (table != TRACKED_BY_LOCAL)
		key.gid = mad_path_peer(&tracked->is.path);
	return key;
}

static bool has_key(const struct tracked *tracked, enum tracked_table table,
		    const struct cm_key *key)
{
	struct mad_gid peer;

	if (id_of(tracked, table) != key->id)
		return false;
	if (table == TRACKED_BY_LOCAL)
		return true;
	if (key->guid && key->guid != tracked->is.remote_ca_guid)
		return false;
	peer = mad_path_peer(&tracked->is.path);
	return memcmp(&peer, &key->gid, sizeof(peer)) == 0;
}

static uint32_t *bucket_at(const struct tracker *tracker, enum tracked_table table, uint32_t i)
{
	return &tracker->buckets[table * (size_t)tracker->n_buckets_max + i];
}

/*
 * Hashed without the GUID, which callers do not always know. What belongs into a bucket that there
 * is not yet is in the one that will be split for it.
 */
static uint32_t *bucket_of(const struct tracker *tracker, enum tracked_table table,
			   const struct cm_key *key)
{
	struct cm_key hashed = { .gid = key->gid, .id = key->id };
	uint32_t i = (uint32_t)cm_key_hash(&hashed, tracker->secret) & (tracker->n_buckets_max - 1);

	return bucket_at(tracker, table,
			 i < tracker->n_buckets ? i : i - tracker->n_buckets_max / 2);
}

static uint32_t *next_of(const struct tracker *tracker, enum tracked_table table,
			 struct tracked *tracked)
{
	return table == TRACKED_BY_OWN_QPN ? &tracker->next_by_own_qpn[tracked->index]
					   : &tracked->next[table];
}

/* Return: the first entry with the key in a chain that begins at an index, or NULL. */
static struct tracked *find_in_chain(const struct tracker *tracker, enum tracked_table table,
				     uint32_t at, const struct cm_key *key)
{
	struct tracked *tracked;

	while ((tracked = tracked_at(tracker, at)) && !has_key(tracked, table, key))
		at = *next_of(tracker, table, tracked);
	return tracked;
}

static bool has_enough(const struct tracker *tracker, enum tracked_table table, uint32_t at,
		       const struct cm_key *key)
{
	struct tracked *other;
	unsigned int n;

	for (n = 0; n < TRACKED_ALIKE_MAX; n++) {
		other = find_in_chain(tracker, table, at, key);
		if (!other)
			return false;
		at = *next_of(tracker, table, other);
	}
	return true;
}

static void link_in(struct tracker *tracker, enum tracked_table table, struct tracked *tracked)
{
	struct cm_key key = key_of(tracked, table);
	uint32_t *bucket = bucket_of(tracker, table, &key);

	/* The keys of a client's connections may be those that it and its accomplice have chosen.
	 */
	if (table != TRACKED_BY_LOCAL && has_enough(tracker, table, *bucket, &key))
		return;
	*next_of(tracker, table, tracked) = *bucket;
	*bucket = tracked->index;
	tracked->in |= (uint8_t)(1u << table);
}

static void link_out(struct tracker *tracker, enum tracked_table table, struct tracked *tracked)
{
	struct cm_key key = key_of(tracked, table);
	uint32_t *link = bucket_of(tracker, table, &key);

	while (*link != tracked->index) {
		assert(*link != TRACKED_NONE); /* fails if a key was changed while in the table */
		link = next_of(tracker, table, tracked_at(tracker, *link));
	}
	*link = *next_of(tracker, table, tracked);
	tracked->in &= (uint8_t) ~(1u << table);
}

void tracked_index(struct tracker *tracker, struct tracked *tracked, unsigned int tables)
{
	const unsigned int before = tracked->in;
	enum tracked_table table;

	for (table = TRACKED_BY_LOCAL; (before ^ tables) >> table; table++) {
		if (tables & ~before & 1u << table)
			link_in(tracker, table, tracked);
		if (before & ~tables & 1u << table)
			link_out(tracker, table, tracked);
	}
}

struct tracked *tracked_find(const struct tracker *tracker, enum tracked_table table,
			     const struct tracked *after, const struct cm_key *key)
{
	uint32_t at = after ? *next_of(tracker, table, tracked_at(tracker, after->index))
			    : *bucket_of(tracker, table, key);

	return find_in_chain(tracker, table, at, key);
}

/* --- memory -------------------------------------------------------------- */

static bool make_room_for_buckets(struct tracker *tracker)
{
	uint32_t n = tracker->n_buckets_max ? 2 * tracker->n_buckets_max : BUCKETS_MIN;
	uint32_t *buckets = malloc((size_t)n * TRACKED_N_TABLES * sizeof(uint32_t));
	enum tracked_table table;

	if (!buckets)
		return false;
	for (table = TRACKED_BY_LOCAL; tracker->buckets && table < TRACKED_N_TABLES; table++)
		memcpy(&buckets[table * (size_t)n], bucket_at(tracker, table, 0),
		       tracker->n_buckets * sizeof(uint32_t));
	free(tracker->buckets);
	tracker->buckets = buckets;
	tracker->n_buckets_max = n;
	return true;
}

/* Distributes a chain among its bucket and the new last one, each in the same order. */
static void split_bucket(struct tracker *tracker, enum tracked_table table)
{
	const uint32_t last = tracker->n_buckets - 1;
	uint32_t *from = bucket_at(tracker, table, last - tracker->n_buckets_max / 2);
	uint32_t *to = bucket_at(tracker, table, last), at = *from;
	uint32_t *new_bucket = to;
	struct tracked *tracked;
	struct cm_key key;

	while ((tracked = tracked_at(tracker, at))) {
		key = key_of(tracked, table);
		if (bucket_of(tracker, table, &key) == new_bucket) {
			*to = at;
			to = next_of(tracker, table, tracked);
		} else {
			*from = at;
			from = next_of(tracker, table, tracked);
		}
		at = *next_of(tracker, table, tracked);
	}
	*from = *to = TRACKED_NONE;
}

static bool grow_buckets(struct tracker *tracker)
{
	enum tracked_table table;

	if (tracker->n_buckets == tracker->n_buckets_max && !make_room_for_buckets(tracker))
		return false;
	tracker->n_buckets++;
	for (table = TRACKED_BY_LOCAL; table < TRACKED_N_TABLES; table++) {
		if (tracker->n_buckets > BUCKETS_MIN)
			split_bucket(tracker, table);
		else
			*bucket_at(tracker, table, tracker->n_buckets - 1) = TRACKED_NONE;
	}
	return true;
}

static bool begin_buckets(struct tracker *tracker)
{
	while (tracker->n_buckets < BUCKETS_MIN)
		if (!grow_buckets(tracker))
			return false;
	return true;
}

static bool grow_clients(struct tracker *tracker, uint16_t client)
{
	uint32_t n = tracker->n_clients ? tracker->n_clients : CLIENTS_MIN;
	struct tracked_client *grown;

	while (n <= client)
		n *= 2;
	grown = realloc(tracker->client, n * sizeof(struct tracked_client));
	if (!grown)
		return false;
	memset(grown + tracker->n_clients, 0, (n - tracker->n_clients) * sizeof(*grown));
	tracker->client = grown;
	tracker->n_clients = n;
	return true;
}

static bool grow_chunk_pointers(struct tracker *tracker)
{
	uint32_t n = tracker->n_chunks_max ? 2 * tracker->n_chunks_max : 1;
	struct tracked **grown = realloc(tracker->chunk, n * sizeof(struct tracked *));
	uint32_t *next;

	if (!grown)
		return false;
	tracker->chunk = grown;
	next = realloc(tracker->next_by_own_qpn, n * TRACKED_CHUNK * sizeof(uint32_t));
	if (!next)
		return false;
	tracker->next_by_own_qpn = next;
	tracker->n_chunks_max = n;
	return true;
}

static bool grow_chunks(struct tracker *tracker)
{
	struct tracked *chunk = NULL;
	uint32_t i;

	if (tracker->n_chunks == tracker->n_chunks_max && !grow_chunk_pointers(tracker))
		return false;
	if (tracker->store)
		chunk = tracked_store_grow(tracker->store);
	if (chunk)
		tracker->n_stored++;
	else
		chunk = calloc(TRACKED_CHUNK, sizeof(struct tracked));
	if (!chunk)
		return false;
	for (i = 0; i < TRACKED_CHUNK; i++) {
		chunk[i].index = tracker->n_chunks * TRACKED_CHUNK + i;
		chunk[i].client_next = i + 1 < TRACKED_CHUNK ? chunk[i].index + 1 : tracker->free;
	}
	tracker->chunk[tracker->n_chunks++] = chunk;
	tracker->free = chunk[0].index;
	return true;
}

bool tracked_has_client(struct tracker *tracker, uint16_t client)
{
	return client < tracker->n_clients || grow_clients(tracker, client);
}

/* --- lists --------------------------------------------------------------- */

static uint32_t *list_of(struct tracker *tracker, const struct tracked *tracked)
{
	return tracked->is_orphan ? &tracker->orphans[tracked->owner.block]
	       : tracked->is_dead ? &tracker->dead
				  : &tracker->client[tracked->client].first;
}

static void count(struct tracker *tracker, const struct tracked *tracked, uint32_t by)
{
	struct tracked_left *left = &tracker->left[tracked->is.local_comm_id / CM_ID_BLOCK];
	struct tracked_client *client;

	if (tracked->is_orphan) {
		left->n_orphans += by;
		tracker->n_orphans += by;
		tracker->n_unknown += !tracked->owner.pid && !tracked->is_dead ? by : 0;
	} else if (tracked->is_dead) {
		left->n_dead += by;
		tracker->dead_of[tracked->owner.user] += by;
	} else {
		client = &tracker->client[tracked->client];
		client->count += by;
		if (client->shared)
			*client->shared += by;
	}
}

static void add_to_list(struct tracker *tracker, struct tracked *tracked)
{
	uint32_t *first = list_of(tracker, tracked);
	struct tracked *next = tracked_at(tracker, *first - 1);

	tracked->client_prev = TRACKED_NONE;
	tracked->client_next = *first - 1;
	if (next)
		next->client_prev = tracked->index;
	*first = tracked->index + 1;
	count(tracker, tracked, 1);
}

static void remove_from_list(struct tracker *tracker, struct tracked *tracked)
{
	struct tracked *next = tracked_at(tracker, tracked->client_next);
	struct tracked *prev = tracked_at(tracker, tracked->client_prev);

	if (next)
		next->client_prev = tracked->client_prev;
	if (prev)
		prev->client_next = tracked->client_next;
	else
		*list_of(tracker, tracked) = tracked->client_next + 1;
	count(tracker, tracked, UINT32_MAX); /* -1 */
}

struct tracked *tracked_add(struct tracker *tracker, uint16_t client)
{
	struct tracked *tracked;

	if (!tracked_has_client(tracker, client) ||
	    (tracker->n_tracked >= tracker->n_buckets && !grow_buckets(tracker)) ||
	    (tracker->free == TRACKED_NONE && !grow_chunks(tracker)))
		return NULL;
	tracked = tracked_at(tracker, tracker->free);
	tracker->free = tracked->client_next;
	*tracked = (struct tracked){ .client = client,
				     .index = tracked->index,
				     .owner = tracker->client[client].owner };
	add_to_list(tracker, tracked);
	tracker->n_tracked++;
	return tracked;
}

static void free_tracked(struct tracker *tracker, struct tracked *tracked)
{
	tracked->client_next = tracker->free;
	tracker->free = tracked->index;
}

void tracked_remove(struct tracker *tracker, struct tracked *tracked)
{
	tracked_unseal(tracked);
	tracked_index(tracker, tracked, 0);
	remove_from_list(tracker, tracked);
	tracked->is_orphan = false;
	tracker->n_tracked--;
	free_tracked(tracker, tracked);
}

/* It stays in its table for tracked_find() only; see tracked_of_local(). */
void tracked_reap(struct tracker *tracker, struct tracked *tracked)
{
	remove_from_list(tracker, tracked);
	tracked_index(tracker, tracked, 1u << TRACKED_BY_LOCAL);
	tracked->is_dead = true;
	tracked->is_orphan = false;
	add_to_list(tracker, tracked);
}

void tracked_hand_over(struct tracker *tracker, struct tracked *orphan, uint16_t client)
{
	remove_from_list(tracker, orphan);
	orphan->is_orphan = false;
	orphan->client = client;
	orphan->owner = tracker->client[client].owner;
	add_to_list(tracker, orphan);
}

/* --- from the store ------------------------------------------------------ */

/* The links of the tables are invalid in another process. */
static void adopt_record(struct tracker *tracker, struct tracked *tracked, uint32_t index,
			 tracked_looker *look)
{
	tracked->index = index;
	tracked->client = 0;
	tracked->in = 0;
	tracked->is_unconfirmed = false;
	if (!tracked->is.local_comm_id)
		tracked->handed = 0;
	if (tracked->seal != (TRACKED_SEAL ^ index) || !look(tracker, tracked)) {
		memset(tracked, 0, sizeof(*tracked));
		tracked->index = index;
		free_tracked(tracker, tracked);
		return;
	}
	tracked->is_orphan = true;
	tracked->owner.user = 0;
	add_to_list(tracker, tracked);
	tracker->n_tracked++;
	tracked_index(tracker, tracked,
		      (tracked->is.local_comm_id ? 1u << TRACKED_BY_LOCAL : 0) |
			      (tracked_has_own_qpn(tracked) ? 1u << TRACKED_BY_OWN_QPN : 0));
}

bool tracked_adopt_chunks(struct tracker *tracker, tracked_looker *look)
{
	uint32_t n = tracker->store->n_chunks, i;

	while (tracker->n_chunks < n) {
		if (tracker->n_chunks == tracker->n_chunks_max && !grow_chunk_pointers(tracker))
			return false;
		while (tracker->n_buckets < (tracker->n_chunks + 1) * TRACKED_CHUNK)
			if (!grow_buckets(tracker))
				return false;
		tracker->chunk[tracker->n_chunks] =
			tracked_store_chunk(tracker->store, tracker->n_chunks);
		tracker->n_chunks++;
		tracker->n_stored++;
		for (i = (tracker->n_chunks - 1) * TRACKED_CHUNK;
		     i < tracker->n_chunks * TRACKED_CHUNK; i++)
			adopt_record(tracker, tracked_at(tracker, i), i, look);
	}
	return true;
}

void tracked_forget_chunks(struct tracker *tracker)
{
	tracker->n_chunks = tracker->n_stored = 0;
	tracker->free = TRACKED_NONE;
}

/* --- all of them --------------------------------------------------------- */

struct tracker *tracker_new(uint64_t secret)
{
	struct tracker *tracker = calloc(1, sizeof(*tracker));

	if (!tracker)
		return NULL;
	tracker->secret = secret;
	tracker->free = TRACKED_NONE;
	tracker->left = calloc(UINT32_MAX / CM_ID_BLOCK + 1, sizeof(*tracker->left));
	tracker->orphans = calloc(UINT16_MAX + 1, sizeof(uint32_t));
	tracker->dead_of = calloc(UINT16_MAX + 1, sizeof(uint32_t));
	if (!tracker->left || !tracker->orphans || !tracker->dead_of || !begin_buckets(tracker)) {
		tracker_free(tracker);
		return NULL;
	}
	return tracker;
}

void tracker_free(struct tracker *tracker)
{
	uint32_t i;

	if (!tracker)
		return;
	for (i = tracker->n_stored; i < tracker->n_chunks; i++)
		free(tracker->chunk[i]);
	if (tracker->store && tracker->n_tracked == 0)
		tracked_store_trim(tracker->store);
	free(tracker->chunk);
	free(tracker->next_by_own_qpn);
	free(tracker->buckets);
	free(tracker->client);
	free(tracker->left);
	free(tracker->orphans);
	free(tracker->dead_of);
	free(tracker);
}

bool tracker_share(struct tracker *tracker, uint16_t client, uint32_t *count)
{
	if (!count && client >= tracker->n_clients)
		return true;
	if (!tracked_has_client(tracker, client))
		return false;
	tracker->client[client].shared = count;
	tracker->client[client].n_handed = 0;
	return true;
}

uint32_t tracker_dead_of(const struct tracker *tracker, uint16_t user)
{
	return tracker->dead_of[user];
}

uint32_t tracker_count(const struct tracker *tracker, uint16_t client)
{
	return client < tracker->n_clients ? tracker->client[client].count : 0;
}

void tracker_port_gone(struct tracker *tracker, uint8_t port)
{
	struct tracked *tracked;
	uint32_t i;

	for (i = 0; i < tracker->n_chunks * TRACKED_CHUNK; i++) {
		tracked = tracked_at(tracker, i);
		if (tracked->seal && tracked->is.handle == port)
			tracked_remove(tracker, tracked);
	}
}
