/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How a process gets a UDP socket for its slot: it connects to the socket `udp` in the host's
 * folder, sends the number of its slot, and receives the descriptor. While the connection exists,
 * packets for that slot go to that socket.
 */
#ifndef FABRIC_SHARE_H
#define FABRIC_SHARE_H

#include <stdint.h>

#include "tools/fabric/wire/folder.h"

/**
 * share_request_socket() - request the socket of a slot; waits for the response
 * @ret_conn: the connection
 *
 * Both are owned by the caller, and close-on-exec.
 *
 * Return: the socket, or -errno.
 */
int share_request_socket(const struct fab_folder *folder, unsigned int slot, int *ret_conn);

/**
 * share_read_slot() - read a request from a connection. Return: the slot; 0 at the end of the
 * connection.
 */
uint16_t share_read_slot(int conn);

/** share_send_socket() - send the socket; @fd is a descriptor, or the -errno of a failure */
void share_send_socket(int conn, int fd);

#endif
