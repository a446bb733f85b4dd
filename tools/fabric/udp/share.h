/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How a process gets a UDP socket for its slot: it connects to the socket `udp` in the host's
 * folder, sends the number of its slot, and gets the descriptor. As long as the connection lives,
 * what comes for that slot comes to that socket.
 */
#ifndef FABRIC_SHARE_H
#define FABRIC_SHARE_H

#include <stdint.h>

#include "tools/fabric/wire/folder.h"

/**
 * share_ask() - get the socket of a slot; waits for the answer
 * @ret_conn: the connection
 *
 * Both are the caller's, and closed on exec.
 *
 * Return: the socket, or -errno.
 */
int share_ask(const struct fab_folder *folder, unsigned int slot, int *ret_conn);

/** share_read() - what the other end of a connection asks for. Return: its slot; 0 at its end. */
uint16_t share_read(int conn);

/** share_answer() - give it the socket; @fd: a descriptor, or -errno of why there is none. */
void share_answer(int conn, int fd);

#endif
