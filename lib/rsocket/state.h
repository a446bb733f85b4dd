/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The states of a stream socket as a table of events: next state and action. Pure; stream.c applies
 * it and carries out the actions.
 */
#ifndef LIB_RSOCKET_STATE_H
#define LIB_RSOCKET_STATE_H

#include <stdbool.h>

#define STREAM_STATES(X)                                          \
	X(IDLE)                                                   \
	X(BOUND)                                                  \
	X(LISTENING)                                              \
	X(ADDR)	      /* the address is being resolved */         \
	X(ROUTE)      /* the route is being resolved */           \
	X(CONNECTING) /* REQ was sent */                          \
	X(ACCEPTING)  /* REP was sent */                          \
	X(OPEN)                                                   \
	X(READ_ONLY)  /* we have announced the end of our data */ \
	X(WRITE_ONLY) /* the peer has, or we stopped reading */   \
	X(DISCONNECTED)                                           \
	X(FAILED) /* was never connected */                       \
	X(BROKEN) /* a transfer failed, or the peer violated the protocol */

enum stream_state {
#define X(name) STREAM_##name,
	STREAM_STATES(X)
#undef X
	STREAM_N_STATES,
};

#define STREAM_EVENTS(X)                                          \
	X(BIND)                                                   \
	X(LISTEN)                                                 \
	X(CONNECT)                                                \
	X(ACCEPT) /* the socket was created for a request */      \
	X(ADDR_DONE)                                              \
	X(ROUTE_DONE)                                             \
	X(ESTABLISHED)                                            \
	X(REFUSED) /* a step of the set-up failed */              \
	X(GONE)	   /* the CM reports the end of the connection */ \
	X(SHUT_RD) /* rshutdown() */                              \
	X(SHUT_WR)                                                \
	X(SHUT_RDWR)                                              \
	X(PEER_SHUT) /* the peer sends no more data */            \
	X(PEER_LEFT) /* the peer neither sends nor receives */    \
	X(SEND_FAILED)                                            \
	X(PEER_LIED) /* a violation of the protocol: the connection is ended */

enum stream_event {
#define X(name) STREAM_EV_##name,
	STREAM_EVENTS(X)
#undef X
	STREAM_N_EVENTS,
};

enum stream_action {
	STREAM_REFUSE, /* no edge in the table; the state stays */
	STREAM_NOTHING,
	STREAM_FIND_ROUTE,
	STREAM_SEND_REQ,
	STREAM_BEGIN,	   /* grant the second half of the receive buffer */
	STREAM_SAY_SHUT,   /* send CTRL shutdown */
	STREAM_SAY_LEAVE,  /* send CTRL disconnect */
	STREAM_FLUSH,	   /* move the queue pair to ERR, which ends all requests */
	STREAM_GIVE_ERROR, /* set SO_ERROR, and flush */
};

/**
 * stream_step() - apply an event
 * @state: updated; modified nowhere else
 *
 * Return: the action; STREAM_REFUSE if the event is impossible in this state.
 */
enum stream_action stream_step(enum stream_state *state, enum stream_event event);

/** stream_state_str(), stream_event_str() - names such as "READ_ONLY" and "PEER_SHUT" */
const char *stream_state_str(enum stream_state state);
const char *stream_event_str(enum stream_event event);

/** stream_is_before_connect() - return whether there is no connection and no set-up of one */
static inline bool stream_is_before_connect(enum stream_state state)
{
	return state == STREAM_IDLE || state == STREAM_BOUND || state == STREAM_LISTENING;
}

/** stream_is_opening() - return whether a connection is being set up */
static inline bool stream_is_opening(enum stream_state state)
{
	return state == STREAM_ADDR || state == STREAM_ROUTE || state == STREAM_CONNECTING ||
	       state == STREAM_ACCEPTING;
}

/** stream_can_read(), stream_can_write() - return whether data may be received, or sent */
static inline bool stream_can_read(enum stream_state state)
{
	return state == STREAM_OPEN || state == STREAM_READ_ONLY;
}

static inline bool stream_can_write(enum stream_state state)
{
	return state == STREAM_OPEN || state == STREAM_WRITE_ONLY;
}

/** stream_can_send_messages() - return whether any message may still be sent */
static inline bool stream_can_send_messages(enum stream_state state)
{
	return stream_can_read(state) || stream_can_write(state);
}

#endif
