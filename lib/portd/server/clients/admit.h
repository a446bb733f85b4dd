/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Admission: whether a process that connects becomes a client, and what it gets. One that is turned
 * away is told why.
 */
#ifndef LIB_PORTD_SERVER_CLIENTS_ADMIT_H
#define LIB_PORTD_SERVER_CLIENTS_ADMIT_H

#include "base/loop.h"

struct client;
struct server;

/**
 * admit_client() - let in the process at the other end of a socket, or turn it away
 * @fd:    owned by the callee
 * @ready: called when the client's socket is readable
 *
 * Return: false if it was turned away.
 */
bool admit_client(struct server *server, int fd,
		  void (*ready)(struct watch *watch, uint32_t events));

/** admit_buffer_bytes() - the size of a client's data socket: less where there are many clients */
int admit_buffer_bytes(const struct client *client);

#endif
