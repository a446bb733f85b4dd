/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The states of a stream socket as a table: what happens, what comes of it, what is to be done
 * about it. Pure; stream.c asks it and does what it says.
 */
#ifndef LIB_RSOCKET_STATE_H
#define LIB_RSOCKET_STATE_H

#include <stdbool.h>

#define STREAM_STATES(X)                                      \
	X(IDLE)                                               \
	X(BOUND)                                              \
	X(LISTENING)                                          \
	X(ADDR)	      /* the address is being resolved */     \
	X(ROUTE)      /* the route */                         \
	X(CONNECTING) /* REQ is out */                        \
	X(ACCEPTING)  /* REP is out */                        \
	X(OPEN)                                               \
	X(READ_ONLY)  /* we have said that we send no more */ \
	X(WRITE_ONLY) /* the peer has, or we read no more */  \
	X(DISCONNECTED)                                       \
	X(FAILED) /* never was connected */                   \
	X(BROKEN) /* a transfer failed, or the peer misbehaved */

enum stream_state {
#define X(name) STREAM_##name,
	STREAM_STATES(X)
#undef X
	STREAM_N_STATES,
};

#define STREAM_EVENTS(X)                                         \
	X(BIND)                                                  \
	X(LISTEN)                                                \
	X(CONNECT)                                               \
	X(ACCEPT) /* the socket was made for a request */        \
	X(ADDR_DONE)                                             \
	X(ROUTE_DONE)                                            \
	X(ESTABLISHED)                                           \
	X(REFUSED) /* a step of the set-up failed */             \
	X(GONE)	   /* the CM says that the connection is over */ \
	X(SHUT_RD) /* rshutdown() */                             \
	X(SHUT_WR)                                               \
	X(SHUT_RDWR)                                             \
	X(PEER_SHUT) /* the peer sends no more */                \
	X(PEER_LEFT) /* neither sends nor receives */            \
	X(SEND_FAILED)                                           \
	X(PEER_LIED) /* about credits, targets or messages: it is cut off */

enum stream_event {
#define X(name) STREAM_EV_##name,
	STREAM_EVENTS(X)
#undef X
	STREAM_N_EVENTS,
};

enum stream_action {
	STREAM_REFUSE, /* what the table does not name: nothing moves */
	STREAM_NOTHING,
	STREAM_FIND_ROUTE,
	STREAM_SEND_REQ,
	STREAM_BEGIN,	   /* tell the peer of the second half of the buffer */
	STREAM_SAY_SHUT,   /* CTRL shutdown */
	STREAM_SAY_LEAVE,  /* CTRL disconnect */
	STREAM_FLUSH,	   /* queue pair to ERR: what is under way ends */
	STREAM_GIVE_ERROR, /* keep the errno for SO_ERROR; flush */
};

/**
 * stream_step() - let something happen
 * @state: moved; this is the only place where it is
 *
 * Return: what is to be done; STREAM_REFUSE if this cannot happen now.
 */
enum stream_action stream_step(enum stream_state *state, enum stream_event event);

/** stream_state_str() - "READ_ONLY"; stream_event_str() - "PEER_SHUT" */
const char *stream_state_str(enum stream_state state);
const char *stream_event_str(enum stream_event event);

/** stream_is_opening() - is a connection being set up? */
bool stream_is_opening(enum stream_state state);

/** stream_can_read() - may more come; stream_can_write() - may more be sent? */
static inline bool stream_can_read(enum stream_state state)
{
	return state == STREAM_OPEN || state == STREAM_READ_ONLY;
}

static inline bool stream_can_write(enum stream_state state)
{
	return state == STREAM_OPEN || state == STREAM_WRITE_ONLY;
}

/** stream_can_talk() - do messages, of whatever kind, still make sense? */
bool stream_can_talk(enum stream_state state);

#endif
