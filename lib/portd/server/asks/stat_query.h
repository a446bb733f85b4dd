/* SPDX-License-Identifier: BSD-2-Clause */
/* Queries of the state of connections, and of counters. */
#ifndef LIB_PORTD_SERVER_ASKS_STAT_QUERY_H
#define LIB_PORTD_SERVER_ASKS_STAT_QUERY_H

#include "lib/portd/server/server_state.h"

/**
 * stat_ask() - start a STAT query: ask clients for their connections
 * @pid: the process to ask; 0 for all
 *
 * Only root and the user that cmportd runs as see the processes of other users.
 *
 * Return: 0, with the query's id and the number of clients asked in @ret; -EBUSY if the client's
 * previous query was less than 20 ms ago.
 */
int stat_ask(struct server *server, struct client *client, uint32_t pid, struct portd_reply *ret);

/** stat_row() - forward a record of a client's report. Return: false for any other record. */
bool stat_row(struct server *server, struct client *client, struct portd_record *record);

#endif
