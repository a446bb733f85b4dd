/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Storage and lookup of tracked connections: chunks that never move, a list of free entries, four
 * hash tables of indices, and a list for each client. The tables grow by one bucket with each
 * connection (linear hashing), so none of these takes long. And what a message that passes does to
 * them. Internal to the ledger.
 */
#ifndef LIB_PORTD_SERVER_LEDGER_TRACKED_TABLE_H
#define LIB_PORTD_SERVER_LEDGER_TRACKED_TABLE_H

#include <stdatomic.h>

#include "cm/fsm.h"
#include "cm/index.h"
#include "lib/portd/server/ledger/tracked.h"
#include "lib/portd/server/ledger/tracked_passed.h"

#define TRACKED_SEAL UINT32_C(0x77696c6c)

struct tracked_client {
	uint32_t first; /* as of the other lists: plus one; 0: none */
	uint32_t count;
	uint32_t *shared;  /* count for several clients, or NULL */
	uint32_t n_handed; /* delivered messages, modulo 2^32 */
	struct tracked_owner owner;
};

/* Numbers of connections without a client whose comm ids are in one block. */
struct tracked_left {
	uint32_t n_orphans, n_dead;
};

struct tracker {
	uint64_t secret;
	struct tracked **chunk;
	uint32_t n_chunks;
	uint32_t n_chunks_max; /* capacity of chunk */
	uint32_t n_stored;     /* the first n_stored chunks are in the store */
	uint32_t free;	       /* list linked by client_next */
	uint32_t n_tracked;
	uint32_t n_buckets;	/* per table */
	uint32_t n_buckets_max; /* room per table; a power of two */
	uint32_t *buckets;	/* all tables, one after the other */
	/* next[TRACKED_BY_OWN_QPN] of each entry, which has no room for it */
	uint32_t *next_by_own_qpn;
	struct tracked_client *client;
	uint32_t n_clients;
	uint32_t dead;	   /* connections of ended clients, being disconnected */
	uint32_t *orphans; /* those whose clients may resume, by their clients' first block */
	uint32_t n_orphans;
	uint32_t n_unknown;	     /* of these, of clients of unknown pid that may resume */
	struct tracked_left *left;   /* by block of comm ids */
	uint32_t *dead_of;	     /* number of dead by user */
	struct tracked_store *store; /* NULL: entries do not survive us */
};

/**
 * tracked_unseal() - mark an entry as incomplete before several of its members change
 *
 * A compiler barrier suffices: the stores of a killed process are seen in program order by
 * processes that map the file later.
 */
static inline void tracked_unseal(struct tracked *tracked)
{
	tracked->seal = 0;
	atomic_signal_fence(memory_order_seq_cst);
}

/** tracked_seal() - mark an entry as complete */
static inline void tracked_seal(struct tracked *tracked)
{
	atomic_signal_fence(memory_order_seq_cst);
	tracked->seal = TRACKED_SEAL ^ tracked->index;
}

#define TRACKED_IN(state) (1u << CM_##state)

/** tracked_is_in() - return whether the state is one of TRACKED_IN(...) | TRACKED_IN(...) */
static inline bool tracked_is_in(const struct tracked *tracked, unsigned int states)
{
	return states >> tracked->is.state & 1;
}

/** tracked_has_ended() - return whether the connection was disconnected, or is being so */
static inline bool tracked_has_ended(const struct tracked *tracked)
{
	return tracked_is_in(tracked,
			     TRACKED_IN(TIMEWAIT) | TRACKED_IN(DREQ_SENT) | TRACKED_IN(DREQ_RCVD));
}

/**
 * tracked_has_own_qpn() - return whether a peer has accepted the connection with its queue pair
 *
 * Before, anybody could name queue pairs that others will create. Later, a client may release its
 * queue pair as soon as either side disconnects.
 */
bool tracked_has_own_qpn(const struct tracked *tracked);

/** tracked_at() - the entry of an index; NULL for TRACKED_NONE */
struct tracked *tracked_at(const struct tracker *tracker, uint32_t index);

/** tracked_has_client() - make room for the list of a client. Return: false when out of memory. */
bool tracked_has_client(struct tracker *tracker, uint16_t client);

/** tracked_add() - add an empty entry to a client's list, in no table. Return: NULL on ENOMEM. */
struct tracked *tracked_add(struct tracker *tracker, uint16_t client);

/** tracked_remove() - remove an entry from all tables and from its list, and free it */
void tracked_remove(struct tracker *tracker, struct tracked *tracked);

/** tracked_reap() - move an entry to the dead; only the table of local comm ids keeps it */
void tracked_reap(struct tracker *tracker, struct tracked *tracked);

/** tracked_hand_over() - move an orphan, not dead, to the list of a client, which must exist */
void tracked_hand_over(struct tracker *tracker, struct tracked *orphan, uint16_t client);

/*
 * Return: whether an entry of a chunk is a valid tracked connection. May look at the entry's own
 * members and its index only.
 */
typedef bool tracked_looker(const struct tracker *tracker, struct tracked *tracked);

/**
 * tracked_adopt_chunks() - use the chunks of the store, whose content is not trusted
 * @look: called for each sealed entry; the entry becomes an orphan if it returns true
 *
 * Return: false when out of memory; then the first chunks are in use.
 */
bool tracked_adopt_chunks(struct tracker *tracker, tracked_looker *look);

/** tracked_forget_chunks() - drop all chunks; they must be in the store, and empty */
void tracked_forget_chunks(struct tracker *tracker);

/**
 * tracked_index() - enter an entry into the given tables and remove it from the others
 * @tables: bitmap; while an entry is in a table, the members of its key must not change
 *
 * An entry is left out of a table, other than that of local comm ids, if TRACKED_ALIKE_MAX entries
 * have its key.
 */
void tracked_index(struct tracker *tracker, struct tracked *tracked, unsigned int tables);

/**
 * tracked_find() - iterate over the entries with a key
 * @after: the previous entry, or NULL to start
 * @key:   a GUID of 0 matches any
 *
 * Return: the next entry, or NULL.
 */
struct tracked *tracked_find(const struct tracker *tracker, enum tracked_table table,
			     const struct tracked *after, const struct cm_key *key);

/* --- a message that passes, and its effects ---------------------------------- */

/* Lookups are keyed by (peer, service id, request id), see remote_ca_guid in cm/conn.h. */
#define TRACKED_LOOKUPS \
	(TRACKED_IN(SIDR_REQ_SENT) | TRACKED_IN(SIDR_REQ_RCVD) | TRACKED_IN(SIDR_REP_SENT))

struct view {
	struct tracker *tracker;
	uint16_t client;
	uint8_t port;
	const struct mad_path *path;
	struct mad_gid peer; /* mad_path_peer() of path */
	const struct cm_msg *msg;
	bool may_add;		 /* a connection, for a message that is sent */
	uint32_t local_comm_id;	 /* the client's */
	uint32_t remote_comm_id; /* the peer's */
};

/** tracked_of_local() - look up the connection of any client; NULL for comm id 0 */
struct tracked *tracked_of_local(const struct tracker *tracker, uint32_t local_comm_id);

/** tracked_left_behind() - look up an orphan, or a connection of an ended client */
struct tracked *tracked_left_behind(const struct tracker *tracker, uint32_t local_comm_id);

/** tracked_answered() - look up a received REQ; prefers one without a local comm id, not in IDLE */
struct tracked *tracked_answered(const struct tracker *tracker, uint16_t client,
				 const struct mad_gid *peer, uint32_t remote_comm_id);

/**
 * tracked_of_peer() - look up a connection of the view's client by its peer's comm id and CA
 * @except: states to skip
 */
struct tracked *tracked_of_peer(const struct view *view, uint64_t ca_guid, uint32_t remote_comm_id,
				unsigned int except);

/** tracked_is_of_peer() - return whether the connection's peer is the one of the message's path */
bool tracked_is_of_peer(const struct view *view, const struct tracked *tracked);

/**
 * tracked_replace() - replace the record of a connection, and update the tables
 * @is:     its state is ignored, unless the connection is known from its client only
 * @passed: all that has passed of it
 */
void tracked_replace(struct tracker *tracker, struct tracked *tracked, const struct cm_record *is,
		     uint8_t passed);

/** tracked_after() - passed_after() of a connection */
uint8_t tracked_after(const struct tracked *tracked, enum cm_event event);

/** tracked_pass() - add a message, unless it is void, see passed_after() */
void tracked_pass(struct tracker *tracker, struct tracked *tracked, enum cm_event event);

/** tracked_take_back_rep() - the client's core has dropped a REP, and waits for another one */
void tracked_take_back_rep(struct tracker *tracker, struct tracked *tracked);

/** tracked_begin() - make a record from a REQ, without ids and queue pairs */
struct cm_record tracked_begin(const struct view *view);

#endif
