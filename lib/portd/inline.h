/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A cmportd of this process alone, in a thread of it: what PURECM_PORTD=inline asks for. It runs
 * the code of the program cmportd (server/server.h) without its socket directory: no socket can be
 * connected to, no file is written, and it goes with its client, or with the process.
 */
#ifndef LIB_PORTD_INLINE_H
#define LIB_PORTD_INLINE_H

#include "lib/portd/client/client.h"

/**
 * inline_connect() - start it; for portd_client_open()
 * @ret_fd: connected to it; owned by the caller
 *
 * There is one at a time: one whose client has gone is waited for.
 *
 * Return: 0; -EBUSY if there is one that has a client; -ESHUTDOWN while the process exits; -errno.
 */
int inline_connect(int *ret_fd, struct portd_why *ret_why);

/**
 * inline_end() - its client has gone, as the process exits: wait until peers were told
 * @ms: no longer than that
 *
 * No other is started.
 */
void inline_end(int ms);

#endif
