/* SPDX-License-Identifier: BSD-2-Clause */
/* What clients send, and their ends. */
#ifndef LIB_PORTD_SERVER_ASKS_CLIENT_IN_H
#define LIB_PORTD_SERVER_ASKS_CLIENT_IN_H

#include "lib/portd/server/server_state.h"

/**
 * client_new() - set up a client that has connected
 * @fd: its control socket, owned by the client
 *
 * Return: false if it was turned away; that costs next to nothing.
 */
bool client_new(struct server *server, int fd);

/** client_open_data() - create a data socket; @ret_fd is the client's end. Return: 0 or -errno. */
int client_open_data(struct server *server, struct client *client, int *ret_fd);

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

#endif
