/* SPDX-License-Identifier: BSD-2-Clause */
/* Datagrams on the sockets between library and cmportd, and the descriptors passed with them. */
#ifndef LIB_PORTD_PROTO_DATAGRAM_H
#define LIB_PORTD_PROTO_DATAGRAM_H

#include <sys/types.h>

#include "lib/portd/proto/proto.h"

/**
 * portd_datagram_send() - send a datagram
 * @fd:    descriptors to pass, up to the first -1; owned by the caller. May be NULL
 * @flags: of sendmsg(); MSG_NOSIGNAL is added
 *
 * Return: 0 or -errno.
 */
int portd_datagram_send(int to, const struct portd_datagram *datagram, const int fd[2], int flags);

/**
 * portd_datagram_receive() - receive a datagram, to be read with portd_get()
 * @ret_fd: the descriptors passed, owned by the caller, or -1; NULL lets the kernel close them
 *
 * A truncated datagram is replaced by one that portd_get() rejects.
 *
 * Return: as recvmsg(), except for EINTR.
 */
ssize_t portd_datagram_receive(int from, struct portd_datagram *ret, int ret_fd[2], int flags);

#endif
