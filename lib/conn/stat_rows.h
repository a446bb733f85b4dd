/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Answers cmportd's queries for the ids of this process (`purecm stat`). Costs nothing without a
 * query. The engine's thread never waits for the client: what does not fit into the socket is sent
 * later.
 */
#ifndef LIB_CONN_STAT_ROWS_H
#define LIB_CONN_STAT_ROWS_H

#include "base/time.h"
#include "lib/portd/client/portd_client.h"

/** stat_asked() - take a snapshot of ids, connections and counters, for stat_send_rows(). */
void stat_asked(uint32_t ask_id);

/** stat_send_rows() - send as many rows as there is room for. */
void stat_send_rows(struct portd_client *client);

/** stat_deadline() - when to call stat_send_rows() again, or CM_TIME_NEVER. */
struct cm_time stat_deadline(void);

/** stat_forget() - drop the query: its client has gone with cmportd. */
void stat_forget(void);

/** stat_after_fork() - in a forked child: drop the parent's query. */
void stat_after_fork(void);

#endif
