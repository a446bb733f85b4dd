/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Requests that found their listener's backlog full. They come in bursts, when a kernel repeats
 * them all at once, and the program takes them one by one: as long as it does, those for which
 * there is no room wait, and nobody notices. A program that does nothing keeps no more of them than
 * its backlog.
 */
#ifndef LIB_CONN_BACKLOG_H
#define LIB_CONN_BACKLOG_H

#include "lib/engine/engine.h"

/** backlog_has_room() - may one more wait? The engine's lock is held. */
bool backlog_has_room(const struct id *listener);

/**
 * backlog_add() - keep a request until its listener has room for it; the engine's lock is held
 * @event: CONNECT_REQUEST, of a new id; its owner's from here on
 */
void backlog_add(struct event *event);

/**
 * backlog_next() - one of the listener's requests was taken; the engine's lock is held
 * @dropped: gets those that have waited for too long, and whose peer has given up
 *
 * Return: the one that is next, for id_post(); NULL if there is none.
 */
struct event *backlog_next(struct engine *engine, struct outbox *box, struct id *listener,
			   struct list *dropped);

/** backlog_drop_all() - likewise, none will be taken any more. */
void backlog_drop_all(struct engine *engine, struct outbox *box, struct id *listener,
		      struct list *dropped);

/** backlog_free() - free what was dropped; no lock is held. */
void backlog_free(struct list *dropped);

#endif
