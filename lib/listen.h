/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Listening: rdma_listen(), and whose request a REQ is. Called by report.c.
 */
#ifndef LIB_LISTEN_H
#define LIB_LISTEN_H

#include "lib/engine.h"

/**
 * listen_request() - a REQ for a service id of ours has come; the engine's lock is held
 * @conn: without owner; gets one, is rejected, or is forgotten
 * @msg:  the REQ
 */
void listen_request(struct engine *engine, struct outbox *box, struct cm_conn *conn,
		    const struct cm_msg *msg);

/** listen_turned_away() - was a request, since listen_give_way()? The engine's thread. */
bool listen_turned_away(void);

/**
 * listen_give_way() - after a message; the engine's thread, no lock is held
 *
 * Requests come in bursts, when a kernel repeats them, and the program takes them one by one. Where
 * one was turned away for want of room, the program gets a moment to make some, before the next;
 * unless it did not use the last one.
 */
void listen_give_way(void);

/** listen_request_taken() - there is room for one more; the engine's lock is held. */
void listen_request_taken(struct id *listener);

/** listen_stop() - no more requests for an id; the engine's lock is held. */
void listen_stop(struct engine *engine, struct id *id);

/** listen_extend() - open the ports of devices that have come; no lock is held. */
void listen_extend(void);

#endif
