/* SPDX-License-Identifier: BSD-2-Clause */
/* Answers to requests on a client's control socket. */
#ifndef LIB_PORTD_SERVER_ASKS_ANSWERS_H
#define LIB_PORTD_SERVER_ASKS_ANSWERS_H

#include "lib/portd/server/server_state.h"

/**
 * answers_handle() - handle a record from a control socket
 * @fd: the descriptor that came with the record, or -1; owned by the callee
 *
 * Return: 0, with *@ret to be sent unless the record is a one-way one; -EPROTO if the client
 * violates the protocol; -EAGAIN to handle it again after the grace period, or in the next turn.
 */
int answers_handle(struct server *server, struct client *client, const struct portd_record *record,
		   int fd, struct portd_reply *ret, int ret_fd[2]);

#endif
