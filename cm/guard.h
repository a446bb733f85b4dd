/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The guards: the connection that a message names, the conditions under which it is valid there,
 * and its event: IBTA vol. 1, 12.11. They change nothing and use no table: the caller passes lookup
 * functions. So the core (demux.c), the connection tracking of cmportd, and the readers of captures
 * share them.
 */
#ifndef CM_GUARD_H
#define CM_GUARD_H

#include "cm/conn.h"

struct cm_arrival;

/* How the receiver finds its connections. Each function returns NULL if there is none. */
struct cm_lookups {
	/* by the receiver's own comm id, for any peer */
	struct cm_record *(*by_local)(const struct cm_arrival *in, uint32_t local_comm_id);
	/* by the peer's CA GUID and comm id; SIDR: by service id and request id */
	struct cm_record *(*by_remote)(const struct cm_arrival *in, uint64_t guid, uint32_t id);
	/* by the peer's CA GUID and queue pair, while the queue pair is connected */
	struct cm_record *(*by_qpn)(const struct cm_arrival *in, uint64_t guid, uint32_t qpn);
};

struct cm_arrival {
	const struct cm_lookups *lookups;
	void *arg; /* for the lookup functions */
	const struct cm_msg *msg;
	struct mad_gid peer; /* mad_path_peer() of the path back to the sender */
};

#define CM_NO_EVENT CM_N_EVENTS

struct cm_found {
	struct cm_record *record; /* named by the message; NULL: none, or the message begins one */
	struct cm_record *stale;  /* another connection, which the peer must have lost; or NULL */
	bool is_known;		  /* address and ids match those of the connection */
	enum cm_counter why;	  /* with CM_NO_EVENT: what is wrong with the message */
};

/**
 * cm_guard() - determine the event that a message is for its receiver
 *
 * Return: the event for @ret->record, or the one that begins a new connection; CM_NO_EVENT if the
 * message is to be dropped.
 */
enum cm_event cm_guard(const struct cm_arrival *in, struct cm_found *ret);

/** cm_call_of() - the call that sends a message of this kind, or CM_NO_EVENT. */
enum cm_event cm_call_of(const struct cm_msg *msg);

/** cm_rej_timeout() - give a REJ reason 4, and the CA GUID that this is to be found by */
void cm_rej_timeout(struct cm_rej *rej, uint64_t ca_guid);

/** cm_rej_guid() - the CA GUID in the additional information of a REJ with reason 4. */
uint64_t cm_rej_guid(const struct cm_rej *rej);

#endif
