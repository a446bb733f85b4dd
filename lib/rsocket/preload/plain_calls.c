/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * librspreload.so: calls with equal meaning for both kinds of descriptors, among them most that
 * transfer data. Programs compiled with _FORTIFY_SOURCE call the names with _chk.
 */
#include <errno.h>
#include <fcntl.h>
#include <rdma/rsocket.h>
#include <stdlib.h>
#include <sys/sendfile.h>
#include <unistd.h>

#include "base/clock.h"
#include "lib/rsocket/preload/preload.h"
#include "lib/rsocket/wait.h"

#define CHUNK_BYTES 65536

#define X(type, name, find, params, ...)                                  \
	EXPORT type name params                                           \
	{                                                                 \
		struct sock *sock = find(fd);                             \
		type result = sock ? r##name(sock->rs, __VA_ARGS__) : -1; \
                                                                          \
		if (!sock || (result < 0 && relay_has_taken(fd, sock)))   \
			result = real()->name(fd, __VA_ARGS__);           \
		return result;                                            \
	}
REAL_SAME(X)
#undef X

ssize_t transfer_send(int fd, struct sock *sock, const struct msghdr *msg, int flags)
{
	ssize_t result = rsendmsg(sock->rs, msg, flags);

	if (result < 0 && relay_has_taken(fd, sock))
		result = real()->sendmsg(fd, msg, flags);
	return result;
}

EXPORT ssize_t sendto(int fd, const void *buf, size_t bytes, int flags, const struct sockaddr *addr,
		      socklen_t addr_bytes)
{
	struct sock *sock = map_socket(fd);
	ssize_t result;

	if (!sock)
		return real()->sendto(fd, buf, bytes, flags, addr, addr_bytes);
	if (sock_is_stream(sock))
		result = rsend(sock->rs, buf, bytes, flags);
	else
		result = rsendto(sock->rs, buf, bytes, flags, addr, addr_bytes);
	if (result < 0 && relay_has_taken(fd, sock))
		result = real()->send(fd, buf, bytes, flags);
	return result;
}

/* There is no ancillary data to receive. */
ssize_t transfer_receive(int fd, struct sock *sock, struct msghdr *msg, int flags)
{
	size_t room = msg->msg_controllen;
	ssize_t result;

	msg->msg_controllen = 0;
	result = rrecvmsg(sock->rs, msg, flags);
	if (result >= 0 || !relay_has_taken(fd, sock))
		return result;
	msg->msg_controllen = room;
	return real()->recvmsg(fd, msg, flags);
}

/* --- several messages ---------------------------------------------------- */

EXPORT int recvmmsg(int fd, struct mmsghdr *msg, unsigned int n, int flags,
		    struct timespec *timeout)
{
	struct sock *sock = map_socket(fd);
	struct cm_time deadline;
	unsigned int i;

	if (!sock || !timeout_is_valid(timeout))
		return real()->recvmmsg(fd, msg, n, flags, timeout);
	deadline = wait_deadline(timeout_to_ms(timeout));
	for (i = 0; i < n; i++) {
		ssize_t got = transfer_receive(fd, sock, &msg[i].msg_hdr, flags & ~MSG_WAITFORONE);

		if (got < 0)
			return i ? (int)i : -1;
		msg[i].msg_len = (unsigned int)got;
		if (flags & MSG_WAITFORONE)
			flags |= MSG_DONTWAIT;
		/* As the kernel's: only between messages. */
		if (cm_time_reached(deadline, clock_now()))
			return (int)i + 1;
	}
	return (int)n;
}

static size_t bytes_of(const struct msghdr *msg)
{
	size_t bytes = 0;

	for (size_t i = 0; i < msg->msg_iovlen; i++)
		bytes += msg->msg_iov[i].iov_len;
	return bytes;
}

EXPORT int sendmmsg(int fd, struct mmsghdr *msg, unsigned int n, int flags)
{
	struct sock *sock = map_socket(fd);
	unsigned int i;

	for (i = 0; !sock && i < n; i++)
		making_give(&msg[i].msg_hdr);
	if (!sock)
		return real()->sendmmsg(fd, msg, n, flags);
	for (i = 0; i < n; i++) {
		ssize_t sent = transfer_send(fd, sock, &msg[i].msg_hdr, flags);

		if (sent < 0)
			return i ? (int)i : -1;
		msg[i].msg_len = (unsigned int)sent;
		/* The next message must not be sent before the rest of this one. */
		if ((size_t)sent < bytes_of(&msg[i].msg_hdr))
			return (int)i + 1;
	}
	return (int)n;
}

/* --- vectors with flags -------------------------------------------------- */

/* A stream has no offset but its own. Return: the flags of recvmsg() and sendmsg(), or -1. */
static int flags_of(off_t offset, int flags)
{
	if (offset == -1 && !(flags & ~(RWF_NOWAIT | RWF_HIPRI)))
		return flags & RWF_NOWAIT ? MSG_DONTWAIT : 0;
	errno = offset == -1 ? EOPNOTSUPP : ESPIPE;
	return -1;
}

EXPORT ssize_t preadv2(int fd, const struct iovec *iov, int n, off_t offset, int flags)
{
	struct sock *sock = map_check(fd);
	struct msghdr msg = { .msg_iov = (struct iovec *)(uintptr_t)iov, .msg_iovlen = (size_t)n };
	int msg_flags = flags_of(offset, flags);

	if (!sock)
		return real()->preadv2(fd, iov, n, offset, flags);
	return msg_flags < 0 ? -1 : transfer_receive(fd, sock, &msg, msg_flags);
}

EXPORT ssize_t preadv64v2(int fd, const struct iovec *iov, int n, off64_t offset, int flags)
	__attribute__((alias("preadv2")));

EXPORT ssize_t pwritev2(int fd, const struct iovec *iov, int n, off_t offset, int flags)
{
	struct sock *sock = map_check(fd);
	struct msghdr msg = { .msg_iov = (struct iovec *)(uintptr_t)iov, .msg_iovlen = (size_t)n };
	int msg_flags = flags_of(offset, flags);

	if (!sock)
		return real()->pwritev2(fd, iov, n, offset, flags);
	return msg_flags < 0 ? -1 : rsendmsg(sock->rs, &msg, msg_flags);
}

EXPORT ssize_t pwritev64v2(int fd, const struct iovec *iov, int n, off64_t offset, int flags)
	__attribute__((alias("pwritev2")));

/* As the kernel's: programs do it by other calls then. */
EXPORT ssize_t copy_file_range(int in, off64_t *in_at, int out, off64_t *out_at, size_t bytes,
			       unsigned int flags)
{
	if (!map_check(in) && !map_check(out))
		return real()->copy_file_range(in, in_at, out, out_at, bytes, flags);
	errno = EINVAL;
	return -1;
}

/* As a file system that cannot: programs then copy. */
EXPORT ssize_t splice(int in, off64_t *in_at, int out, off64_t *out_at, size_t bytes,
		      unsigned int flags)
{
	if (!map_check(in) && !map_check(out))
		return real()->splice(in, in_at, out, out_at, bytes, flags);
	errno = EINVAL;
	return -1;
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
	struct sock *sock = map_check(out);

	return sock ? send_file(sock->rs, in, offset, bytes)
		    : real()->sendfile(out, in, offset, bytes);
}

EXPORT ssize_t sendfile64(int out, int in, off64_t *offset, size_t bytes)
	__attribute__((alias("sendfile")));
