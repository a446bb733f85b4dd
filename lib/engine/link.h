/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The client side of the connection to cmportd, and the comm ids that a step of the core has freed.
 * Below the engine; messages from cmportd arrive above it, in host.h.
 */
#ifndef LIB_ENGINE_LINK_H
#define LIB_ENGINE_LINK_H

#include "lib/engine/outbox.h"
#include "lib/portd/client/portd_client.h"

/** link_client() - cmportd, or NULL before host_start(). May be called under any lock. */
struct portd_client *link_client(void);

/** link_begin() - set the client once cmportd was found. */
void link_begin(struct portd_client *found);

/** link_is_up() - note whether cmportd is connected, and watches the devices of our ports */
void link_is_up(bool is);

/**
 * link_events() - number of events of an opened port's device; 0: not known now. Any lock.
 * @handle: of the port
 */
unsigned int link_events(int handle);

/** link_after_fork() - in a forked child: drop the parent's connection to cmportd. */
void link_after_fork(void);

/** link_heard() - count a MAD from cmportd; the engine's lock is held. */
void link_heard(void);

/** link_heard_none() - reset the count for the next cmportd; the engine's lock is held. */
void link_heard_none(void);

/** link_released() - cm_core.released: note a freed comm id; the engine's lock is held. */
void link_released(struct cm_core *core, const struct cm_conn *conn);

/** link_take_closed() - move the comm ids that a step has freed to an outbox; lock as above. */
void link_take_closed(struct outbox *box);

#endif
