/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * librspreload.so: calls with equal meaning for both kinds of descriptors, among them most that
 * transfer data. Programs compiled with _FORTIFY_SOURCE call the names with _chk.
 */
#include <errno.h>
#include <rdma/rsocket.h>
#include <stdlib.h>
#include <sys/sendfile.h>
#include <unistd.h>

#include "lib/rsocket/preload/preload.h"

#define CHUNK_BYTES 65536

#define X(type, name, find, params, ...)                                                      \
	EXPORT type name params                                                               \
	{                                                                                     \
		struct sock *sock = find(fd);                                                 \
                                                                                              \
		return sock ? r##name(sock->rs, __VA_ARGS__) : real()->name(fd, __VA_ARGS__); \
	}
REAL_SAME(X)
#undef X

/* There is no ancillary data to receive. */
ssize_t transfer_receive(struct sock *sock, struct msghdr *msg, int flags)
{
	msg->msg_controllen = 0;
	return rrecvmsg(sock->rs, msg, flags);
}

/* --- checked names ------------------------------------------------------- */

/* Not declared in any header. */
ssize_t __read_chk(int fd, void *buf, size_t bytes, size_t room);
ssize_t __recv_chk(int fd, void *buf, size_t bytes, size_t room, int flags);
ssize_t __recvfrom_chk(int fd, void *buf, size_t bytes, size_t room, int flags,
		       struct sockaddr *addr, socklen_t *addr_bytes);

EXPORT ssize_t __read_chk(int fd, void *buf, size_t bytes, size_t room)
{
	if (bytes > room)
		abort();
	return read(fd, buf, bytes);
}

EXPORT ssize_t __recv_chk(int fd, void *buf, size_t bytes, size_t room, int flags)
{
	if (bytes > room)
		abort();
	return recv(fd, buf, bytes, flags);
}

EXPORT ssize_t __recvfrom_chk(int fd, void *buf, size_t bytes, size_t room, int flags,
			      struct sockaddr *addr, socklen_t *addr_bytes)
{
	if (bytes > room)
		abort();
	return recvfrom(fd, buf, bytes, flags, addr, addr_bytes);
}

/* --- sendfile() ---------------------------------------------------------- */

/* The file's position advances by the bytes sent, not by those read. */
static ssize_t send_file(int rs, int in, off_t *offset, size_t bytes)
{
	off_t at = offset ? *offset : lseek(in, 0, SEEK_CUR);
	char chunk[CHUNK_BYTES];
	size_t sent = 0;
	ssize_t n = 0;

	while (sent < bytes) {
		size_t left = bytes - sent;

		n = pread(in, chunk, left < sizeof(chunk) ? left : sizeof(chunk), at);
		if (n > 0)
			n = rsend(rs, chunk, (size_t)n, 0);
		if (n <= 0)
			break;
		sent += (size_t)n;
		at += n;
	}
	if (offset)
		*offset = at;
	else
		lseek(in, at, SEEK_SET);
	return sent || n == 0 ? (ssize_t)sent : n;
}

EXPORT ssize_t sendfile(int out, int in, off_t *offset, size_t bytes)
{
	struct sock *sock = fork_checked(out);

	return sock ? send_file(sock->rs, in, offset, bytes)
		    : real()->sendfile(out, in, offset, bytes);
}

EXPORT ssize_t sendfile64(int out, int in, off64_t *offset, size_t bytes)
	__attribute__((alias("sendfile")));
