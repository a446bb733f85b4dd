/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The table of a stream socket's states: see state.h.
 */
#include "lib/rsocket/state.h"

struct edge {
	enum stream_state next;
	enum stream_action action;
};

/* clang-format off */
#define TO(event, to, what) [STREAM_EV_##event] = { STREAM_##to, STREAM_##what }

/* Events that end any established connection. */
#define ENDS                                   \
	TO(GONE, DISCONNECTED, FLUSH),         \
	TO(PEER_LEFT, DISCONNECTED, NOTHING),  \
	TO(SHUT_RDWR, DISCONNECTED, SAY_LEAVE),\
	TO(SEND_FAILED, BROKEN, GIVE_ERROR),   \
	TO(PEER_LIED, BROKEN, GIVE_ERROR)

static const struct edge edges[STREAM_N_STATES][STREAM_N_EVENTS] = {
	[STREAM_IDLE] = {
		TO(BIND, BOUND, NOTHING),
		TO(LISTEN, LISTENING, NOTHING),
		TO(CONNECT, ADDR, NOTHING),
		TO(ACCEPT, ACCEPTING, NOTHING),
	},
	[STREAM_BOUND] = {
		TO(LISTEN, LISTENING, NOTHING),
		TO(CONNECT, ADDR, NOTHING),
	},
	[STREAM_LISTENING] = {
		TO(LISTEN, LISTENING, NOTHING),
		TO(SHUT_RD, BOUND, NOTHING),
		TO(SHUT_WR, LISTENING, NOTHING),
		TO(SHUT_RDWR, BOUND, NOTHING),
	},
	[STREAM_ADDR] = {
		TO(ADDR_DONE, ROUTE, FIND_ROUTE),
		TO(REFUSED, FAILED, GIVE_ERROR),
	},
	[STREAM_ROUTE] = {
		TO(ROUTE_DONE, CONNECTING, SEND_REQ),
		TO(REFUSED, FAILED, GIVE_ERROR),
	},
	[STREAM_CONNECTING] = {
		TO(ESTABLISHED, OPEN, BEGIN),
		TO(REFUSED, FAILED, GIVE_ERROR),
	},
	[STREAM_ACCEPTING] = {
		TO(ESTABLISHED, OPEN, BEGIN),
		TO(REFUSED, FAILED, GIVE_ERROR),
	},
	[STREAM_OPEN] = {
		TO(SHUT_RD, WRITE_ONLY, NOTHING),
		TO(SHUT_WR, READ_ONLY, SAY_SHUT),
		TO(PEER_SHUT, WRITE_ONLY, NOTHING),
		ENDS,
	},
	[STREAM_READ_ONLY] = {
		TO(SHUT_RD, DISCONNECTED, SAY_LEAVE),
		TO(SHUT_WR, READ_ONLY, NOTHING),
		TO(PEER_SHUT, DISCONNECTED, NOTHING),
		ENDS,
	},
	[STREAM_WRITE_ONLY] = {
		TO(SHUT_RD, WRITE_ONLY, NOTHING),
		TO(SHUT_WR, DISCONNECTED, SAY_LEAVE),
		TO(PEER_SHUT, WRITE_ONLY, NOTHING),
		ENDS,
	},
	[STREAM_DISCONNECTED] = {
		TO(SHUT_RD, DISCONNECTED, NOTHING),
		TO(SHUT_WR, DISCONNECTED, NOTHING),
		TO(SHUT_RDWR, DISCONNECTED, NOTHING),
		TO(PEER_SHUT, DISCONNECTED, NOTHING),
		TO(PEER_LEFT, DISCONNECTED, NOTHING),
		TO(GONE, DISCONNECTED, FLUSH),
		TO(SEND_FAILED, DISCONNECTED, FLUSH),
		TO(PEER_LIED, DISCONNECTED, FLUSH),
	},
	[STREAM_BROKEN] = {
		TO(SHUT_RD, BROKEN, NOTHING),
		TO(SHUT_WR, BROKEN, NOTHING),
		TO(SHUT_RDWR, BROKEN, NOTHING),
		TO(GONE, BROKEN, NOTHING),
		TO(SEND_FAILED, BROKEN, NOTHING),
		TO(PEER_LIED, BROKEN, NOTHING),
	},
};

#undef ENDS
#undef TO
/* clang-format on */

enum stream_action stream_step(enum stream_state *state, enum stream_event event)
{
	const struct edge *edge = &edges[*state][event];

	if (edge->action != STREAM_REFUSE)
		*state = edge->next;
	return edge->action;
}

const char *stream_state_str(enum stream_state state)
{
	static const char *const names[STREAM_N_STATES] = {
#define X(name) [STREAM_##name] = #name,
		STREAM_STATES(X)
#undef X
	};

	return names[state];
}

const char *stream_event_str(enum stream_event event)
{
	static const char *const names[STREAM_N_EVENTS] = {
#define X(name) [STREAM_EV_##name] = #name,
		STREAM_EVENTS(X)
#undef X
	};

	return names[event];
}
