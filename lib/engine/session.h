/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The state of the connection to cmportd, and the comm ids that a step of the core has freed. Below
 * the engine; the calls to cmportd are above it, in cmportd.h.
 */
#ifndef LIB_ENGINE_SESSION_H
#define LIB_ENGINE_SESSION_H

#include "lib/engine/outbox.h"
#include "lib/portd/client/portd_client.h"

/** session_client() - cmportd, or NULL before cmportd_start(). May be called under any lock. */
struct portd_client *session_client(void);

/** session_begin() - set the client once cmportd was found. */
void session_begin(struct portd_client *found);

/** session_set_up() - note whether cmportd is connected, and watches the devices of our ports */
void session_set_up(bool is);

/**
 * session_events() - number of events of an opened port's device; 0: not known now. Any lock.
 * @handle: of the port
 */
unsigned int session_events(int handle);

/** session_after_fork() - in a forked child: drop the parent's connection to cmportd. */
void session_after_fork(void);

/** session_count_mad() - count a MAD from cmportd; the engine's lock is held. */
void session_count_mad(void);

/** session_reset_count() - reset the count for the next cmportd; the engine's lock is held. */
void session_reset_count(void);

/** session_note_released() - cm_core.released: note a freed comm id; the engine's lock is held. */
void session_note_released(struct cm_core *core, const struct cm_conn *conn);

/** session_take_closed() - move the comm ids that a step has freed to an outbox; lock as above. */
void session_take_closed(struct outbox *box);

#endif
