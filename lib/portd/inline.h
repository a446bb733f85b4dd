/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A cmportd for this process only, in a thread, selected with PURECM_PORTD=inline. It runs the code
 * of the program cmportd (server/server.h) without its socket directory: it has no socket to
 * connect to, writes no file, and ends with its client, or with the process.
 */
#ifndef LIB_PORTD_INLINE_H
#define LIB_PORTD_INLINE_H

#include "lib/portd/client/client.h"

/**
 * inline_connect() - start the server; for portd_client_open()
 * @ret_fd: a connection to it; owned by the caller
 *
 * Only one server runs at a time: waits for the end of one whose client has disconnected.
 *
 * Return: 0; -EBUSY if there is one with a client; -ESHUTDOWN while the process exits; -errno.
 */
int inline_connect(int *ret_fd, struct portd_why *ret_why);

/**
 * inline_end() - wait until the server has disconnected its connections when the process exits
 * @ms: timeout in milliseconds
 *
 * No server can be started afterwards.
 */
void inline_end(int ms);

#endif
