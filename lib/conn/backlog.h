/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Requests beyond their listener's backlog. A kernel retransmits requests in bursts, and the
 * program takes them one by one: as long as it does, requests beyond the backlog are queued here. A
 * program that takes none keeps no more than its backlog.
 */
#ifndef LIB_CONN_BACKLOG_H
#define LIB_CONN_BACKLOG_H

#include "lib/engine/engine.h"

/** backlog_has_room() - true if one more request may wait. The engine's lock is held. */
bool backlog_has_room(const struct id *listener);

/**
 * backlog_add() - queue a request until its listener has room; the engine's lock is held
 * @event: CONNECT_REQUEST of a new id; ownership passes to the queue
 */
void backlog_add(struct event *event);

/**
 * backlog_next() - get the next request after the listener took one; the engine's lock is held
 * @dropped: receives requests that waited too long, so that their peer has given up
 *
 * Return: the request, for id_post(); NULL if there is none.
 */
struct event *backlog_next(struct engine *engine, struct outbox *box, struct id *listener,
			   struct list *dropped);

/** backlog_drop_all() - drop all waiting requests; the engine's lock is held. */
void backlog_drop_all(struct engine *engine, struct outbox *box, struct id *listener,
		      struct list *dropped);

/** backlog_free() - free dropped requests; no lock is held. */
void backlog_free(struct list *dropped);

#endif
