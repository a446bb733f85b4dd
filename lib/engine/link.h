/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The way to cmportd: messages out, and comm ids that are free again. It knows the client of
 * cmportd and ports, and is below the engine; what cmportd says comes in above it, in host.h.
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

/** link_released() - cm_core.released: a comm id is free again; the engine's lock is held. */
void link_released(struct cm_core *core, const struct cm_conn *conn);

/** link_take_closed() - the comm ids that a step has set free; the engine's lock is held. */
void link_take_closed(struct outbox *box);

/** link_send() - have cmportd send. Return: 0 or -errno. */
int link_send(const struct outbox *box);

/** link_hold() - have it send at link_release(); @again: it was sent before. */
void link_hold(const struct outbox *box, bool again);

/** link_release() - Return: 0 or -errno: what was held is lost. */
int link_release(void);

#endif
