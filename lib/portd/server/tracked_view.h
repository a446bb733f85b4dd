/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A message that passes, and what it can do to tracked connections. Part of tracked.h.
 */
#ifndef LIB_PORTD_SERVER_TRACKED_VIEW_H
#define LIB_PORTD_SERVER_TRACKED_VIEW_H

#include "cm/fsm.h"
#include "lib/portd/server/tracked_table.h"

#define TRACKED_IN(state) (1u << CM_##state)

/* They are found by (peer, service id, request id), see remote_ca_guid in cm/conn.h. */
#define TRACKED_LOOKUPS \
	(TRACKED_IN(SIDR_REQ_SENT) | TRACKED_IN(SIDR_REQ_RCVD) | TRACKED_IN(SIDR_REP_SENT))

struct view {
	struct tracker *tracker;
	uint16_t client;
	uint8_t port;
	const struct mad_path *path;
	struct mad_gid peer; /* mad_path_peer() of it */
	const struct cm_msg *msg;
	uint32_t local_comm_id;	 /* the client's half of the connection ... */
	uint32_t remote_comm_id; /* ... and its peer's */
};

/** tracked_is_in() - in one of some states: TRACKED_IN(...) | TRACKED_IN(...) */
static inline bool tracked_is_in(const struct tracked *tracked, unsigned int states)
{
	return states >> tracked->is.state & 1;
}

/** tracked_of_local() - whichever client's it is; NULL for comm id 0. */
struct tracked *tracked_of_local(const struct tracker *tracker, uint32_t local_comm_id);

/** tracked_left_behind() - that of an orphan, or of one who is dead. */
struct tracked *tracked_left_behind(const struct tracker *tracker, uint32_t local_comm_id);

/** tracked_unnamed() - of a REQ whose receiver has not told its comm id; of several one not IDLE.
 */
struct tracked *tracked_unnamed(const struct tracker *tracker, uint16_t client,
				const struct mad_gid *peer, uint32_t remote_comm_id);

/**
 * tracked_of_peer() - the client's own by what the peer calls it
 * @ca_guid: of the peer's CA, or NULL if the message does not tell
 * @id:      comm id or queue pair, as the table has it
 * @except:  states in which it does not count
 */
struct tracked *tracked_of_peer(const struct view *view, enum tracked_table table,
				const uint64_t *ca_guid, uint32_t id, unsigned int except);

/** tracked_is_of_peer() - is the other end of the message's path its peer? */
bool tracked_is_of_peer(const struct view *view, const struct tracked *tracked);

/** tracked_replace() - all that it says is changed. */
void tracked_replace(struct tracker *tracker, struct tracked *tracked, const struct cm_record *is);

/** tracked_step() - as the client's core. Return: false if the event means nothing in its state. */
bool tracked_step(struct tracker *tracker, struct tracked *tracked, enum cm_event event);

/**
 * tracked_begin() - what a REQ says of the connection; no ids and queue pairs
 * @event: CM_CALL_REQ or CM_RX_REQ
 */
struct cm_record tracked_begin(const struct view *view, enum cm_event event);

#endif
