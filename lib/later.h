/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The functions of the ABI that have no implementation yet, one row each: return type, what failure
 * returns, name, parameters. lib/later.c makes each of them fail with ENOSYS, tests/abi/later.c
 * holds the list against the tracked one. Define LATER and include this; whoever implements a
 * function takes its row out here and its line out of tests/abi/later.txt.
 */

/* clang-format off */

LATER(int, -1, rsocket, (int domain, int type, int protocol))
LATER(int, -1, rbind, (int socket, const struct sockaddr *addr, socklen_t len))
LATER(int, -1, rlisten, (int socket, int backlog))
LATER(int, -1, raccept, (int socket, struct sockaddr *addr, socklen_t *len))
LATER(int, -1, rconnect, (int socket, const struct sockaddr *addr, socklen_t len))
LATER(int, -1, rshutdown, (int socket, int how))
LATER(int, -1, rclose, (int socket))
LATER(ssize_t, -1, rrecv, (int socket, void *buf, size_t len, int flags))
LATER(ssize_t, -1, rrecvfrom,
      (int socket, void *buf, size_t len, int flags, struct sockaddr *addr, socklen_t *addr_len))
LATER(ssize_t, -1, rrecvmsg, (int socket, struct msghdr *msg, int flags))
LATER(ssize_t, -1, rsend, (int socket, const void *buf, size_t len, int flags))
LATER(ssize_t, -1, rsendto,
      (int socket, const void *buf, size_t len, int flags, const struct sockaddr *addr,
       socklen_t addr_len))
LATER(ssize_t, -1, rsendmsg, (int socket, const struct msghdr *msg, int flags))
LATER(ssize_t, -1, rread, (int socket, void *buf, size_t len))
LATER(ssize_t, -1, rreadv, (int socket, const struct iovec *iov, int n))
LATER(ssize_t, -1, rwrite, (int socket, const void *buf, size_t len))
LATER(ssize_t, -1, rwritev, (int socket, const struct iovec *iov, int n))
LATER(int, -1, rpoll, (struct pollfd *fds, nfds_t n, int timeout_ms))
LATER(int, -1, rselect, (int n, fd_set *in, fd_set *out, fd_set *err, struct timeval *timeout))
LATER(int, -1, rgetpeername, (int socket, struct sockaddr *addr, socklen_t *len))
LATER(int, -1, rgetsockname, (int socket, struct sockaddr *addr, socklen_t *len))
LATER(int, -1, rsetsockopt, (int socket, int level, int name, const void *value, socklen_t len))
LATER(int, -1, rgetsockopt, (int socket, int level, int name, void *value, socklen_t *len))
LATER(int, -1, rfcntl, (int socket, int cmd, ...))
LATER(off_t, -1, riomap, (int socket, void *buf, size_t len, int prot, int flags, off_t offset))
LATER(int, -1, riounmap, (int socket, void *buf, size_t len))
LATER(size_t, (size_t)-1, riowrite,
      (int socket, const void *buf, size_t len, off_t offset, int flags))
LATER(int, -1, repoll_create, (int flags))
LATER(int, -1, repoll_ctl, (int epfd, int op, int fd, struct epoll_event *event))
LATER(int, -1, repoll_wait, (int epfd, struct epoll_event *events, int n, int timeout_ms))
/* clang-format on */
