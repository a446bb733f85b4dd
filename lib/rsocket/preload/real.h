/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The functions of the C library that the preload library replaces, one row each, and the C
 * library's own, which it calls for all that is not a socket of ours.
 */
#ifndef PRELOAD_REAL_H
#define PRELOAD_REAL_H

#include <poll.h>
#include <stdbool.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/uio.h>

/* clang-format off */
/*
 * Those that do the same with the same arguments, on either kind: type, name, how the socket behind
 * the descriptor is found, parameters, and the arguments after the descriptor.
 */
#define REAL_SAME(X)                                                                             \
	X(int, shutdown, fork_settled, (int fd, int how), how)                                   \
	X(int, getpeername, map_get, (int fd, struct sockaddr *addr, socklen_t *bytes),          \
	  addr, bytes)                                                                           \
	X(int, getsockname, map_get, (int fd, struct sockaddr *addr, socklen_t *bytes),          \
	  addr, bytes)                                                                           \
	X(int, setsockopt, map_get,                                                              \
	  (int fd, int level, int name, const void *value, socklen_t bytes),                     \
	  level, name, value, bytes)                                                             \
	X(int, getsockopt, map_get,                                                              \
	  (int fd, int level, int name, void *value, socklen_t *bytes),                          \
	  level, name, value, bytes)                                                             \
	X(ssize_t, recv, fork_settled, (int fd, void *buf, size_t bytes, int flags),             \
	  buf, bytes, flags)                                                                     \
	X(ssize_t, recvfrom, fork_settled,                                                       \
	  (int fd, void *buf, size_t bytes, int flags, struct sockaddr *addr,                    \
	   socklen_t *addr_bytes),                                                               \
	  buf, bytes, flags, addr, addr_bytes)                                                   \
	X(ssize_t, read, fork_settled, (int fd, void *buf, size_t bytes), buf, bytes)            \
	X(ssize_t, readv, fork_settled, (int fd, const struct iovec *iov, int n), iov, n)        \
	X(ssize_t, send, fork_settled, (int fd, const void *buf, size_t bytes, int flags),       \
	  buf, bytes, flags)                                                                     \
	X(ssize_t, sendto, fork_settled,                                                         \
	  (int fd, const void *buf, size_t bytes, int flags, const struct sockaddr *addr,        \
	   socklen_t addr_bytes),                                                                \
	  buf, bytes, flags, addr, addr_bytes)                                                   \
	X(ssize_t, sendmsg, fork_settled, (int fd, const struct msghdr *msg, int flags),         \
	  msg, flags)                                                                            \
	X(ssize_t, write, fork_settled, (int fd, const void *buf, size_t bytes), buf, bytes)     \
	X(ssize_t, writev, fork_settled, (int fd, const struct iovec *iov, int n), iov, n)

#define REAL_OTHERS(X)                                                                           \
	X(int, socket, (int domain, int type, int protocol))                                     \
	X(int, bind, (int fd, const struct sockaddr *addr, socklen_t bytes))                     \
	X(int, listen, (int fd, int backlog))                                                    \
	X(int, accept4, (int fd, struct sockaddr *addr, socklen_t *bytes, int flags))            \
	X(int, connect, (int fd, const struct sockaddr *addr, socklen_t bytes))                  \
	X(int, close, (int fd))                                                                  \
	X(int, dup, (int fd))                                                                    \
	X(int, dup2, (int from, int to))                                                         \
	X(int, dup3, (int from, int to, int flags))                                              \
	X(int, fcntl, (int fd, int cmd, ...))                                                    \
	X(int, ioctl, (int fd, unsigned long request, ...))                                      \
	X(ssize_t, recvmsg, (int fd, struct msghdr *msg, int flags))                             \
	X(ssize_t, sendfile, (int out, int in, off_t *offset, size_t bytes))                     \
	X(int, poll, (struct pollfd *fds, nfds_t n, int timeout_ms))                             \
	X(int, ppoll, (struct pollfd *fds, nfds_t n, const struct timespec *timeout,             \
		       const sigset_t *mask))                                                    \
	X(int, select, (int n, fd_set *in, fd_set *out, fd_set *err, struct timeval *timeout))   \
	X(int, epoll_create1, (int flags))                                                       \
	X(int, epoll_ctl, (int epfd, int op, int fd, struct epoll_event *event))                 \
	X(int, epoll_pwait, (int epfd, struct epoll_event *events, int n, int timeout_ms,        \
			     const sigset_t *mask))
/* clang-format on */

struct real {
#define X(type, name, find, params, ...) type(*name) params;
	REAL_SAME(X)
#undef X
#define X(type, name, params) type(*name) params;
	REAL_OTHERS(X)
#undef X
};

/** real() - Return: all of them, looked up at the first call. */
const struct real *real(void);

/**
 * real_is_inside() - does librdmacm make this call?
 * @caller: __builtin_return_address(0)
 *
 * Its own sockets must not become RDMA sockets.
 */
bool real_is_inside(const void *caller);

#endif
