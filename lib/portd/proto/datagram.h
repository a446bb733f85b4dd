/* SPDX-License-Identifier: BSD-2-Clause */
/* Datagrams on the sockets between library and cmportd, and the descriptors passed with them. */
#ifndef LIB_PORTD_PROTO_DATAGRAM_H
#define LIB_PORTD_PROTO_DATAGRAM_H

#include <sys/types.h>

#include "lib/portd/proto/proto.h"

#define PORTD_FDS_MAX 253 /* descriptors that the kernel passes with one datagram */

/**
 * portd_datagram_send() - send a datagram
 * @fd:    descriptors to pass, up to the first -1; owned by the caller. May be NULL
 * @flags: of send(); MSG_NOSIGNAL is added
 *
 * Return: 0; -EAGAIN without room within SO_SNDTIMEO, which signals hardly prolong; -errno.
 */
int portd_datagram_send(int to, const struct portd_datagram *datagram, const int fd[2], int flags);

/**
 * portd_datagram_receive() - receive a datagram, to be read with portd_get()
 * @ret_fd: the descriptors passed, owned by the caller, or -1; NULL lets the kernel close them
 *
 * A truncated datagram is replaced by one that portd_get() rejects.
 *
 * Return: as recv(), except for EINTR; positive for a truncated one.
 */
ssize_t portd_datagram_receive(int from, struct portd_datagram *ret, int ret_fd[2], int flags);

/**
 * portd_datagram_receive_all() - receive a datagram, if there is one, from a client that is not
 * trusted
 * @ret_fd: all descriptors passed, owned by the caller, and -1 after them: closing one may wait,
 *          and the kernel would do that here with those for which there is no room
 *
 * Return: as portd_datagram_receive().
 */
ssize_t portd_datagram_receive_all(int from, struct portd_datagram *ret,
				   int ret_fd[PORTD_FDS_MAX + 1]);

#endif
