/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * librspreload.so: what sends and receives. The names with _chk are what programs call that were
 * compiled with checks of buffer sizes.
 */
#include <errno.h>
#include <rdma/rsocket.h>
#include <stdlib.h>
#include <sys/sendfile.h>
#include <unistd.h>

#include "lib/rsocket/preload/fork.h"
#include "lib/rsocket/preload/real.h"

#define EXPORT	    __attribute__((visibility("default")))
#define CHUNK_BYTES 65536

/* Called by name from programs only. */
ssize_t __read_chk(int fd, void *buf, size_t bytes, size_t room);
ssize_t __recv_chk(int fd, void *buf, size_t bytes, size_t room, int flags);
ssize_t __recvfrom_chk(int fd, void *buf, size_t bytes, size_t room, int flags,
		       struct sockaddr *addr, socklen_t *addr_bytes);

/* --- receiving ----------------------------------------------------------- */

EXPORT ssize_t recv(int fd, void *buf, size_t bytes, int flags)
{
	struct sock *sock = fork_settled(fd);

	return sock ? rrecv(sock->rs, buf, bytes, flags) : real()->recv(fd, buf, bytes, flags);
}

EXPORT ssize_t recvfrom(int fd, void *buf, size_t bytes, int flags, struct sockaddr *addr,
			socklen_t *addr_bytes)
{
	struct sock *sock = fork_settled(fd);

	return sock ? rrecvfrom(sock->rs, buf, bytes, flags, addr, addr_bytes)
		    : real()->recvfrom(fd, buf, bytes, flags, addr, addr_bytes);
}

/* There is no ancillary data to receive. */
EXPORT ssize_t recvmsg(int fd, struct msghdr *msg, int flags)
{
	struct sock *sock = fork_settled(fd);

	if (!sock)
		return real()->recvmsg(fd, msg, flags);
	msg->msg_controllen = 0;
	return rrecvmsg(sock->rs, msg, flags);
}

EXPORT ssize_t read(int fd, void *buf, size_t bytes)
{
	struct sock *sock = fork_settled(fd);

	return sock ? rread(sock->rs, buf, bytes) : real()->read(fd, buf, bytes);
}

EXPORT ssize_t readv(int fd, const struct iovec *iov, int n)
{
	struct sock *sock = fork_settled(fd);

	return sock ? rreadv(sock->rs, iov, n) : real()->readv(fd, iov, n);
}

static void check(size_t bytes, size_t room)
{
	if (bytes > room)
		abort();
}

EXPORT ssize_t __read_chk(int fd, void *buf, size_t bytes, size_t room)
{
	check(bytes, room);
	return read(fd, buf, bytes);
}

EXPORT ssize_t __recv_chk(int fd, void *buf, size_t bytes, size_t room, int flags)
{
	check(bytes, room);
	return recv(fd, buf, bytes, flags);
}

EXPORT ssize_t __recvfrom_chk(int fd, void *buf, size_t bytes, size_t room, int flags,
			      struct sockaddr *addr, socklen_t *addr_bytes)
{
	check(bytes, room);
	return recvfrom(fd, buf, bytes, flags, addr, addr_bytes);
}

/* --- sending ------------------------------------------------------------- */

EXPORT ssize_t send(int fd, const void *buf, size_t bytes, int flags)
{
	struct sock *sock = fork_settled(fd);

	return sock ? rsend(sock->rs, buf, bytes, flags) : real()->send(fd, buf, bytes, flags);
}

EXPORT ssize_t sendto(int fd, const void *buf, size_t bytes, int flags, const struct sockaddr *addr,
		      socklen_t addr_bytes)
{
	struct sock *sock = fork_settled(fd);

	return sock ? rsendto(sock->rs, buf, bytes, flags, addr, addr_bytes)
		    : real()->sendto(fd, buf, bytes, flags, addr, addr_bytes);
}

EXPORT ssize_t sendmsg(int fd, const struct msghdr *msg, int flags)
{
	struct sock *sock = fork_settled(fd);

	return sock ? rsendmsg(sock->rs, msg, flags) : real()->sendmsg(fd, msg, flags);
}

EXPORT ssize_t write(int fd, const void *buf, size_t bytes)
{
	struct sock *sock = fork_settled(fd);

	return sock ? rwrite(sock->rs, buf, bytes) : real()->write(fd, buf, bytes);
}

EXPORT ssize_t writev(int fd, const struct iovec *iov, int n)
{
	struct sock *sock = fork_settled(fd);

	return sock ? rwritev(sock->rs, iov, n) : real()->writev(fd, iov, n);
}

/* --- sendfile() ---------------------------------------------------------- */

/* One chunk. Return: bytes sent, 0 at the end of the file, or -1. What was read and not sent is for
 * the next call: the file's position moves by what was sent only. */
static ssize_t send_chunk(int rs, int in, off_t at, size_t bytes)
{
	char chunk[CHUNK_BYTES];
	ssize_t n = pread(in, chunk, bytes < sizeof(chunk) ? bytes : sizeof(chunk), at);

	return n > 0 ? rsend(rs, chunk, (size_t)n, 0) : n;
}

static ssize_t send_file(int rs, int in, off_t *offset, size_t bytes)
{
	off_t at = offset ? *offset : lseek(in, 0, SEEK_CUR);
	size_t sent = 0;
	ssize_t n = 0;

	while (sent < bytes) {
		n = send_chunk(rs, in, at, bytes - sent);
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
	struct sock *sock = fork_settled(out);

	return sock ? send_file(sock->rs, in, offset, bytes)
		    : real()->sendfile(out, in, offset, bytes);
}

EXPORT ssize_t sendfile64(int out, int in, off64_t *offset, size_t bytes)
{
	return sendfile(out, in, offset, bytes);
}
