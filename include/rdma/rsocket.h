/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sockets over RDMA: each function does what the socket call without the leading r does, over a
 * queue pair. A socket of rsocket() is a file descriptor that only these functions may use;
 * rpoll(), rselect() and repoll_wait() also accept other descriptors.
 *
 * Return values and errno are those of the socket call. ENOTSUP stands for unsupported features:
 * ancillary data, options not listed at rsetsockopt(), other domains, types and protocols. SIGPIPE
 * is never sent.
 */
#ifndef RSOCKET_H
#define RSOCKET_H

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <errno.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/mman.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The library is built with -fvisibility=hidden; it exports what is declared here. */
#pragma GCC visibility push(default)

/**
 * rsocket() - open a socket
 * @domain:   AF_INET, AF_INET6 or AF_IB
 * @type:     SOCK_STREAM or SOCK_DGRAM, optionally with SOCK_CLOEXEC and SOCK_NONBLOCK
 * @protocol: 0, or IPPROTO_TCP or IPPROTO_UDP to match @type
 *
 * Return: the socket, for rclose(); or -1 with errno set: ENODEV without RDMA device, ENOTSUP.
 */
int rsocket(int domain, int type, int protocol);

/* rbind() - as bind(). */
int rbind(int socket, const struct sockaddr *addr, socklen_t addrlen);

/* rlisten() - as listen(). */
int rlisten(int socket, int backlog);

/* raccept() - as accept(); the new socket has the listener's buffer and queue sizes. */
int raccept(int socket, struct sockaddr *addr, socklen_t *addrlen);

/* rconnect() - as connect(). */
int rconnect(int socket, const struct sockaddr *addr, socklen_t addrlen);

/* rshutdown() - as shutdown(); waits until all has arrived, 0.5 s at most. */
int rshutdown(int socket, int how);

/* rclose() - as close(). */
int rclose(int socket);

/* rrecv() - as recv(), with MSG_DONTWAIT, MSG_PEEK and MSG_WAITALL. */
ssize_t rrecv(int socket, void *buf, size_t len, int flags);

/* rrecvfrom() - as recvfrom(), flags as rrecv(). */
ssize_t rrecvfrom(int socket, void *buf, size_t len, int flags, struct sockaddr *src_addr,
		  socklen_t *addrlen);

/* rrecvmsg() - as recvmsg(), flags as rrecv(). */
ssize_t rrecvmsg(int socket, struct msghdr *msg, int flags);

/* rsend() - as send(), with MSG_DONTWAIT. */
ssize_t rsend(int socket, const void *buf, size_t len, int flags);

/* rsendto() - as sendto(), flags as rsend(). */
ssize_t rsendto(int socket, const void *buf, size_t len, int flags,
		const struct sockaddr *dest_addr, socklen_t addrlen);

/* rsendmsg() - as sendmsg(), flags as rsend(). */
ssize_t rsendmsg(int socket, const struct msghdr *msg, int flags);

/* rread() - as read(). */
ssize_t rread(int socket, void *buf, size_t count);

/* rreadv() - as readv(). */
ssize_t rreadv(int socket, const struct iovec *iov, int iovcnt);

/* rwrite() - as write(). */
ssize_t rwrite(int socket, const void *buf, size_t count);

/* rwritev() - as writev(). */
ssize_t rwritev(int socket, const struct iovec *iov, int iovcnt);

/* rpoll() - as poll(). */
int rpoll(struct pollfd *fds, nfds_t nfds, int timeout);

/* rselect() - as select(). */
int rselect(int nfds, fd_set *readfds, fd_set *writefds, fd_set *exceptfds,
	    struct timeval *timeout);

/**
 * repoll_create() - as epoll_create1()
 * @flags: O_CLOEXEC, O_NONBLOCK or 0
 *
 * Return: a handle for repoll_ctl() and repoll_wait(), closed by rclose(); or -1 with errno set.
 */
int repoll_create(int flags);

/**
 * repoll_ctl() - as epoll_ctl()
 * @epfd:  from repoll_create()
 * @op:    EPOLL_CTL_ADD, EPOLL_CTL_MOD or EPOLL_CTL_DEL
 * @fd:    a socket of this library, or any other descriptor
 * @event: events to wait for, optionally with EPOLLET or EPOLLONESHOT; copied
 *
 * Return: 0, or a positive errno: EEXIST, ENOENT, EBADF, EINVAL, ENOMEM.
 */
int repoll_ctl(int epfd, int op, int fd, struct epoll_event *event);

/**
 * repoll_wait() - as epoll_wait()
 * @epfd:      from repoll_create()
 * @events:    filled in
 * @maxevents: size of @events
 * @timeout:   timeout in milliseconds; a negative value waits forever
 *
 * Return: number of events, 0 after @timeout, or a positive errno.
 */
int repoll_wait(int epfd, struct epoll_event *events, int maxevents, int timeout);

/* rgetpeername() - as getpeername(). */
int rgetpeername(int socket, struct sockaddr *addr, socklen_t *addrlen);

/* rgetsockname() - as getsockname(). */
int rgetsockname(int socket, struct sockaddr *addr, socklen_t *addrlen);

/* Option level of the options below. */
#define SOL_RDMA 0x10000

/**
 * Options of SOL_RDMA, to be set before connecting
 * @RDMA_SQSIZE:    int, size of the send queue
 * @RDMA_RQSIZE:    int, size of the receive queue
 * @RDMA_INLINE:    int, maximum size of messages that are sent inline, in bytes
 * @RDMA_IOMAPSIZE: int, number of buffers that the peer may riomap()
 * @RDMA_ROUTE:     struct ibv_path_data[], the path to connect over
 */
enum {
	RDMA_SQSIZE,
	RDMA_RQSIZE,
	RDMA_INLINE,
	RDMA_IOMAPSIZE,
	RDMA_ROUTE,
};

/*
 * rsetsockopt() - as setsockopt(). Besides SOL_RDMA: SO_REUSEADDR, SO_RCVBUF, SO_SNDBUF, SO_LINGER,
 * SO_KEEPALIVE, SO_OOBINLINE; TCP_NODELAY, TCP_KEEPIDLE, TCP_MAXSEG; IP_TOS; IPV6_V6ONLY.
 */
int rsetsockopt(int socket, int level, int optname, const void *optval, socklen_t optlen);

/* rgetsockopt() - as getsockopt(), also SO_ERROR. */
int rgetsockopt(int socket, int level, int optname, void *optval, socklen_t *optlen);

/* rfcntl() - as fcntl(), with F_GETFL, F_SETFL (O_NONBLOCK), F_GETFD and F_SETFD. */
int rfcntl(int socket, int cmd, ... /* arg */);

/**
 * riomap() - map a buffer, into which the peer may write with riowrite()
 * @socket: connected
 * @buf:    the buffer; must stay valid until riounmap()
 * @len:    size in bytes
 * @prot:   PROT_WRITE, or PROT_NONE to only register it for sending
 * @flags:  0
 * @offset: offset by which the peer addresses the buffer; -1 for its address
 *
 * Return: the offset, or -1 with errno set: ENOMEM if the peer's table is full, EINVAL.
 */
off_t riomap(int socket, void *buf, size_t len, int prot, int flags, off_t offset);

/**
 * riounmap() - unmap a buffer
 * @socket: as for riomap()
 * @buf:    as for riomap()
 * @len:    as for riomap()
 *
 * Return: 0, or -1 with errno set: EINVAL if exactly this buffer is not mapped.
 */
int riounmap(int socket, void *buf, size_t len);

/**
 * riowrite() - write into a buffer of the peer, which is not notified
 * @socket: connected
 * @buf:    data to write
 * @count:  size in bytes
 * @offset: offset of the peer's mapping, plus the position in the buffer
 * @flags:  as for rsend()
 *
 * Return: bytes written, fewer if the peer's buffer ends; or (size_t)-1 with errno set.
 */
size_t riowrite(int socket, const void *buf, size_t count, off_t offset, int flags);

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif /* RSOCKET_H */
