/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The functions of the C library that the preload library stands in front of. One row each; used by
 * all of preload/ for what is none of ours.
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
#define REAL_FUNCTIONS(X)                                                                        \
	X(int, socket, (int domain, int type, int protocol))                                     \
	X(int, bind, (int fd, const struct sockaddr *addr, socklen_t bytes))                     \
	X(int, listen, (int fd, int backlog))                                                    \
	X(int, accept4, (int fd, struct sockaddr *addr, socklen_t *bytes, int flags))            \
	X(int, connect, (int fd, const struct sockaddr *addr, socklen_t bytes))                  \
	X(int, shutdown, (int fd, int how))                                                      \
	X(int, close, (int fd))                                                                  \
	X(int, dup, (int fd))                                                                    \
	X(int, dup2, (int from, int to))                                                         \
	X(int, dup3, (int from, int to, int flags))                                              \
	X(int, getpeername, (int fd, struct sockaddr *addr, socklen_t *bytes))                   \
	X(int, getsockname, (int fd, struct sockaddr *addr, socklen_t *bytes))                   \
	X(int, setsockopt, (int fd, int level, int name, const void *value, socklen_t bytes))    \
	X(int, getsockopt, (int fd, int level, int name, void *value, socklen_t *bytes))         \
	X(int, fcntl, (int fd, int cmd, ...))                                                    \
	X(int, ioctl, (int fd, unsigned long request, ...))                                      \
	X(ssize_t, recv, (int fd, void *buf, size_t bytes, int flags))                           \
	X(ssize_t, recvfrom, (int fd, void *buf, size_t bytes, int flags, struct sockaddr *addr, \
			      socklen_t *addr_bytes))                                            \
	X(ssize_t, recvmsg, (int fd, struct msghdr *msg, int flags))                             \
	X(ssize_t, read, (int fd, void *buf, size_t bytes))                                      \
	X(ssize_t, readv, (int fd, const struct iovec *iov, int n))                              \
	X(ssize_t, send, (int fd, const void *buf, size_t bytes, int flags))                     \
	X(ssize_t, sendto, (int fd, const void *buf, size_t bytes, int flags,                    \
			    const struct sockaddr *addr, socklen_t addr_bytes))                  \
	X(ssize_t, sendmsg, (int fd, const struct msghdr *msg, int flags))                       \
	X(ssize_t, write, (int fd, const void *buf, size_t bytes))                               \
	X(ssize_t, writev, (int fd, const struct iovec *iov, int n))                             \
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
#define X(type, name, params) type(*name) params;
	REAL_FUNCTIONS(X)
#undef X
};

/** real() - Return: all of them, looked up at the first call. */
const struct real *real(void);

/**
 * real_is_inside() - does the library below us make this call?
 * @caller: __builtin_return_address(0)
 *
 * Its own sockets are to be what it asks for.
 */
bool real_is_inside(const void *caller);

#endif
