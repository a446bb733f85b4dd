/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Answering cmportd when somebody asks how the ids of this process stand (`purecm stat`). Nothing
 * is done, kept or counted for it before that. The engine's thread never waits for the asker: what
 * does not fit into the socket is sent later.
 */
#ifndef LIB_CONN_STAT_H
#define LIB_CONN_STAT_H

#include "base/time.h"
#include "lib/portd/client/client.h"

/** stat_asked() - write all ids, connections and counters down, to be sent by stat_send_rows(). */
void stat_asked(uint32_t ask_id);

/** stat_send_rows() - send what there is room for. */
void stat_send_rows(struct portd_client *client);

/** stat_deadline() - when stat_send_rows() is needed again; CM_TIME_NEVER if not at all. */
struct cm_time stat_deadline(void);

/** stat_forget() - who asked has gone with cmportd. */
void stat_forget(void);

/** stat_after_fork() - in a forked child: the parent was asked, not we. */
void stat_after_fork(void);

#endif
