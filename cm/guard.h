/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The guards: which connection a message names, what must hold for the message to mean anything
 * there, and which event it is: IBTA vol. 1, 12.11. They change nothing and know no table: the
 * caller gives its look-ups. So the core (demux.c), cmportd, which tracks the connections of its
 * clients, and the readers of captures ask the same functions.
 */
#ifndef CM_GUARD_H
#define CM_GUARD_H

#include "cm/conn.h"

struct cm_arrival;

/* How the receiver finds its connections. Each returns NULL if there is none. */
struct cm_lookups {
	/* by the receiver's own comm id, whoever the peer is */
	struct cm_record *(*by_local)(const struct cm_arrival *in, uint32_t local_comm_id);
	/* by the peer's CA and comm id; a lookup (SIDR): by the service id and the request id */
	struct cm_record *(*by_remote)(const struct cm_arrival *in, uint64_t guid, uint32_t id);
	/* by the peer's CA and queue pair, as long as the queue pair is connected */
	struct cm_record *(*by_qpn)(const struct cm_arrival *in, uint64_t guid, uint32_t qpn);
};

struct cm_arrival {
	const struct cm_lookups *lookups;
	void *arg; /* for them */
	const struct cm_msg *msg;
	struct mad_gid peer; /* mad_path_peer() of the way back to the sender */
};

#define CM_NO_EVENT CM_N_EVENTS

struct cm_found {
	struct cm_record *record; /* that the message names; NULL: none, or one that it begins */
	struct cm_record *stale;  /* another one that the peer must have forgotten, or NULL */
	bool is_known; /* sender and ids are those that were agreed on: nobody else's message */
	enum cm_counter why; /* without an event: what is wrong with the message */
};

/**
 * cm_guard() - what does a message mean to its receiver?
 *
 * Return: the event that happens to @ret->record, or that begins a new connection;
 * CM_NO_EVENT: it means nothing.
 */
enum cm_event cm_guard(const struct cm_arrival *in, struct cm_found *ret);

/** cm_call_of() - with which call was this message sent? CM_NO_EVENT: with none of ours. */
enum cm_event cm_call_of(const struct cm_msg *msg);

/** cm_rej_guid() - the CA that a REJ with reason 4 names in its additional information. */
uint64_t cm_rej_guid(const struct cm_rej *rej);

#endif
