/* SPDX-License-Identifier: BSD-2-Clause */
/* A message that passes, and its effects on tracked connections. Internal to the tracker. */
#ifndef LIB_PORTD_SERVER_LEDGER_TRACKED_VIEW_H
#define LIB_PORTD_SERVER_LEDGER_TRACKED_VIEW_H

#include "cm/fsm.h"
#include "lib/portd/server/ledger/tracked_passed.h"
#include "lib/portd/server/ledger/tracked_table.h"

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
 * tracked_of_peer() - look up a connection of the view's client by an id of its peer
 * @ca_guid: of the peer's CA, or NULL if the message has none
 * @id:      comm id or queue pair, depending on @table
 * @except:  states to skip
 */
struct tracked *tracked_of_peer(const struct view *view, enum tracked_table table,
				const uint64_t *ca_guid, uint32_t id, unsigned int except);

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
