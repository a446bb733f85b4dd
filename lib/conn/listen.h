/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Listening: rdma_listen(), and whose request a REQ is.
 */
#ifndef LIB_CONN_LISTEN_H
#define LIB_CONN_LISTEN_H

#include "lib/engine/engine.h"

/**
 * listen_request() - a REQ for a service id of ours has come; the engine's lock is held
 * @conn: without owner; gets one, is rejected, or is forgotten
 * @msg:  the REQ
 */
void listen_request(struct engine *engine, struct outbox *box, struct cm_conn *conn,
		    const struct cm_msg *msg);

/** listen_stop() - no more requests for an id; the engine's lock is held. */
void listen_stop(struct engine *engine, struct id *id);

/** listen_extend() - open the ports of devices that have come; no lock is held. */
void listen_extend(void);

/**
 * listen_request_taken() - CONNECT_REQUEST: see struct event
 *
 * There is room for another request, the new id is shown its device and path, and that of a
 * synchronous listener gets a channel of its own; if it cannot have one, the request is refused.
 */
int listen_request_taken(struct event *event);

#endif
