/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The connection to cmportd, for whoever has something to say to it, and the comm ids that a step
 * of the core set free. Below the engine; what cmportd says comes in above it, in host.h.
 */
#ifndef LIB_ENGINE_LINK_H
#define LIB_ENGINE_LINK_H

#include "lib/engine/outbox.h"
#include "lib/portd/client/client.h"

/** link_client() - cmportd, after host_start(); NULL before. May be called under any lock. */
struct portd_client *link_client(void);

/** link_begin() - cmportd was found. */
void link_begin(struct portd_client *found);

/** link_after_fork() - in a forked child: cmportd was the parent's. */
void link_after_fork(void);

/** link_heard() - a MAD of cmportd's is being taken; the engine's lock is held. */
void link_heard(void);

/** link_heard_none() - the next cmportd has sent nothing yet; likewise. */
void link_heard_none(void);

/** link_released() - cm_core.released: a comm id is free again; the engine's lock is held. */
void link_released(struct cm_core *core, const struct cm_conn *conn);

/** link_take_closed() - the comm ids that a step has set free; the engine's lock is held. */
void link_take_closed(struct outbox *box);

#endif
