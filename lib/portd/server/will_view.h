/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A message that passes, and what it can do to wills: shared by will_sent.c and will_received.c,
 * written in will.c.
 */
#ifndef LIB_PORTD_SERVER_WILL_VIEW_H
#define LIB_PORTD_SERVER_WILL_VIEW_H

#include "cm/fsm.h"
#include "lib/portd/server/will_table.h"

#define WILL_IN(state) (1u << CM_##state)

/* They are found by (peer, service id, request id), see remote_ca_guid in cm/conn.h. */
#define WILLS_OF_LOOKUPS (WILL_IN(SIDR_REQ_SENT) | WILL_IN(SIDR_REQ_RCVD) | WILL_IN(SIDR_REP_SENT))

struct view {
	struct wills *wills;
	uint16_t client;
	uint8_t port;
	const struct mad_path *path;
	struct mad_gid peer; /* cm_peer_gid() of it */
	const struct cm_msg *msg;
	uint32_t local_comm_id;	 /* the client's half of the connection ... */
	uint32_t remote_comm_id; /* ... and its peer's */
};

/** will_is_in() - in one of some states: WILL_IN(...) | WILL_IN(...) */
static inline bool will_is_in(const struct will *will, unsigned int states)
{
	return states >> will->is.state & 1;
}

/** will_of_local() - whichever client's it is; NULL for comm id 0. */
struct will *will_of_local(const struct wills *wills, uint32_t local_comm_id);

/** will_left_behind() - that of an orphan, or of one who is dead. */
struct will *will_left_behind(const struct wills *wills, uint32_t local_comm_id);

/** will_unnamed() - of a REQ whose receiver has not told its comm id; of several one not IDLE. */
struct will *will_unnamed(const struct wills *wills, uint16_t client, const struct mad_gid *peer,
			  uint32_t remote_comm_id);

/**
 * will_of_peer() - the client's own by what the peer calls it
 * @ca_guid: of the peer's CA, or NULL if the message does not tell
 * @id:      comm id or queue pair, as the table has it
 * @except:  states in which it does not count
 */
struct will *will_of_peer(const struct view *view, enum will_table table, const uint64_t *ca_guid,
			  uint32_t id, unsigned int except);

/** will_is_of_peer() - is the other end of the message's path its peer? */
bool will_is_of_peer(const struct view *view, const struct will *will);

/** will_replace() - all that it says is changed. */
void will_replace(struct wills *wills, struct will *will, const struct cm_record *is);

/** will_step() - as the client's core. Return: false if the event means nothing in its state. */
bool will_step(struct wills *wills, struct will *will, enum cm_event event);

/**
 * will_begin() - what a REQ says of the connection; no ids and queue pairs
 * @event: CM_CALL_REQ or CM_RX_REQ
 */
struct cm_record will_begin(const struct view *view, enum cm_event event);

#endif
