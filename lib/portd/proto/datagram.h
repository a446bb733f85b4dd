/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Datagrams on the sockets between library and cmportd, with descriptors that go along.
 */
#ifndef LIB_PORTD_PROTO_DATAGRAM_H
#define LIB_PORTD_PROTO_DATAGRAM_H

#include <sys/types.h>

#include "lib/portd/proto/proto.h"

/**
 * portd_datagram_send() - send what was put into a datagram
 * @fd:    descriptors to send along, the first ones that are not -1; stay the caller's. May be NULL
 * @flags: of sendmsg(); MSG_NOSIGNAL is one of them
 *
 * Return: 0 or -errno.
 */
int portd_datagram_send(int to, const struct portd_datagram *datagram, const int fd[2], int flags);

/**
 * portd_datagram_receive() - receive one, to be read by portd_get()
 * @ret_fd: what came along, owned by the caller, or -1; NULL: the kernel closes it
 *
 * One that is too long becomes one that is not a record.
 *
 * Return: as recvmsg(), but for EINTR.
 */
ssize_t portd_datagram_receive(int from, struct portd_datagram *ret, int ret_fd[2], int flags);

#endif
