/* SPDX-License-Identifier: BSD-2-Clause */
/* What clients send, answers to requests on their control sockets, and their ends. */
#ifndef LIB_PORTD_SERVER_ASKS_ASKS_H
#define LIB_PORTD_SERVER_ASKS_ASKS_H

#include "lib/portd/server/server_state.h"

/**
 * client_new() - set up a client that has connected
 * @fd: its control socket, owned by the client
 *
 * Return: false if it was turned away; that costs next to nothing.
 */
bool client_new(struct server *server, int fd);

/** client_ask_again() - handle a deferred request */
void client_ask_again(struct server *server, struct client *client);

/** client_unthrottle() - resume clients that had used up their rate */
void client_unthrottle(struct server *server);

/** client_expire() - disconnect clients that have sent no request in time */
void client_expire(struct server *server);

/** client_forget() - free a client that may resume with the next cmportd */
void client_forget(struct server *server, struct client *client);

/**
 * client_close() - end the tracked connections of a disconnected client, then free it
 *
 * Return: false if connections are left for the next turn.
 */
bool client_close(struct server *server, struct client *client);

/* --- for the files of this room ------------------------------------------- */

/** client_open_data() - create a data socket; @ret_fd is the client's end. Return: 0 or -errno. */
int client_open_data(struct server *server, struct client *client, int *ret_fd);

/**
 * answers_handle() - handle a record from a control socket
 * @fd: the descriptor that came with the record, or -1; owned by the callee
 *
 * Return: 0, with *@ret to be sent unless the record is a one-way one; -EPROTO if the client
 * violates the protocol; -EAGAIN to handle it again after the grace period, or in the next turn.
 */
int answers_handle(struct server *server, struct client *client, const struct portd_record *record,
		   int fd, struct portd_reply *ret, int ret_fd[2]);

/**
 * stat_ask() - start a STAT query: ask clients for their connections
 * @pid: the process to ask; 0 for all
 *
 * A user sees only that user's processes, except root and the user that cmportd runs as.
 *
 * Return: 0, with the query's id and the number of clients asked in @ret; -EBUSY if the client's
 * previous query was less than 20 ms ago.
 */
int stat_ask(struct server *server, struct client *client, uint32_t pid, struct portd_reply *ret);

/** stat_row() - forward a record of a client's report. Return: false for any other record. */
bool stat_row(struct server *server, struct client *client, struct portd_record *record);

#endif
