/* SPDX-License-Identifier: BSD-2-Clause */
/* Tracked connections that a previous cmportd has left: orphans, until their clients resume. */
#ifndef LIB_PORTD_SERVER_LEDGER_TRACKED_ADOPT_H
#define LIB_PORTD_SERVER_LEDGER_TRACKED_ADOPT_H

#include "lib/portd/server/ledger/tracked.h"

/**
 * tracker_keep() - store the tracked connections in a file, as far as there is room
 * @store: must outlive the tracker
 *
 * To be called while the tracker is empty. Connections in the file, left by a previous cmportd,
 * become orphans until they are returned or adopted; those of clients without comm ids are dropped.
 *
 * Return: 0 or -ENOMEM.
 */
int tracker_keep(struct tracker *tracker, struct tracked_store *store);

/**
 * tracker_own() - set the owner to be written into a client's future tracked connections
 *
 * Return: 0 or -ENOMEM.
 */
int tracker_own(struct tracker *tracker, uint16_t client, const struct tracked_owner *owner);

/** tracker_rename() - set a new device name for a handle */
void tracker_rename(struct tracker *tracker, uint8_t handle, const struct tracked_port *port);

/**
 * tracker_handle() - choose the handle of a port
 * @port:   with its current name; the names of stored ports have been updated, tracker_rename()
 * @in_use: bitmap of the handles of other ports
 *
 * Prefers the handle that the port had with the previous cmportd, so that tracked connections keep
 * naming the same port.
 *
 * Return: the handle, or -ENOSPC.
 */
int tracker_handle(struct tracker *tracker, const struct tracked_port *port, uint64_t in_use);

/** tracker_port() - look up the port that a handle means in orphans. Return: false if none. */
bool tracker_port(const struct tracker *tracker, uint8_t handle, struct tracked_port *ret);

/**
 * tracker_orphan() - iterate over the orphans, client by client
 * @after: the previous orphan, or NULL to start
 */
const struct tracked *tracker_orphan(const struct tracker *tracker, const struct tracked *after);

/** tracker_has_orphans() - return whether there are any */
bool tracker_has_orphans(const struct tracker *tracker);

/** tracker_orphan_of() - iterate over the orphans whose client had @block as its first one */
const struct tracked *tracker_orphan_of(const struct tracker *tracker, uint16_t block,
					const struct tracked *after);

/** tracker_awaits_unknown() - return whether an orphan, not dead, is of a client of unknown pid */
bool tracker_awaits_unknown(const struct tracker *tracker);

/**
 * tracker_hold_block() - return whether an orphan, or with @for_dead a connection of an ended
 * client, has a comm id of the block
 */
bool tracker_hold_block(const struct tracker *tracker, uint16_t block, bool for_dead);

/**
 * tracker_return() - give an orphan, not dead, to its client, which has resumed
 *
 * It is tracked as before, but tracker_confirm() removes it unless tracker_set() reports it.
 *
 * Return: false when out of memory.
 */
bool tracker_return(struct tracker *tracker, const struct tracked *orphan, uint16_t client);

/** tracker_confirm() - remove the returned connections that a client has not reported */
void tracker_confirm(struct tracker *tracker, uint16_t client);

/** tracker_adopt() - take an orphan that is to be ended, as tracker_take() does */
void tracker_adopt(struct tracker *tracker, const struct tracked *orphan, struct cm_record *ret);

#endif
