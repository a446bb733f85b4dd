/* SPDX-License-Identifier: BSD-2-Clause */
/* Listening: rdma_listen(), and dispatch of REQs to listeners. */
#ifndef LIB_CONN_LISTEN_H
#define LIB_CONN_LISTEN_H

#include "lib/engine/engine.h"

/**
 * listen_request() - handle a REQ for a local service id; the engine's lock is held
 * @conn: without owner; gets one, is rejected, or is dropped
 * @msg:  the REQ
 */
void listen_request(struct engine *engine, struct outbox *box, struct cm_conn *conn,
		    const struct cm_msg *msg);

/**
 * listen_forget() - destroy the id of a request without an answer; the peer's next REQ is a new one
 * @child: its request was neither accepted nor rejected
 */
void listen_forget(struct id *child);

/** listen_stop() - stop accepting requests for an id; the engine's lock is held. */
void listen_stop(struct engine *engine, struct id *id);

/**
 * listen_request_taken() - taken() of CONNECT_REQUEST: see struct event
 *
 * Makes room for another request, and attaches the new id to its device and path. The id of a
 * synchronous listener gets a channel of its own; if that fails, the request is refused.
 */
int listen_request_taken(struct event *event);

#endif
