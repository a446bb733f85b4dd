/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The public calls on a socket: each looks up the handle, holds a reference during the call, and
 * uses the handle's operations. Polling is in poll.c.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <netinet/in.h>
#include <rdma/rsocket.h>
#include <stdarg.h>
#include <string.h>

#include "lib/rsocket/connecting.h"
#include "lib/rsocket/dgram.h"
#include "lib/rsocket/iomap.h"
#include "lib/rsocket/leave.h"
#include "lib/rsocket/restart.h"
#include "lib/rsocket/roster.h"
#include "lib/rsocket/service_thread.h"
#include "lib/rsocket/wait.h"

#define TYPE_FLAGS (SOCK_CLOEXEC | SOCK_NONBLOCK)

/* --- opening and closing ------------------------------------------------- */

static void forget_parent(void)
{
	service_after_fork();
	leave_after_fork();
	wait_after_fork();
	table_after_fork();
}

static void register_fork_handler(void)
{
	pthread_atfork(NULL, NULL, forget_parent);
}

static int open_socket(int domain, int type, int protocol)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	struct rsock *rs = NULL;
	int kind = type & ~TYPE_FLAGS;
	int fd, err;

	if (domain != AF_INET && domain != AF_INET6 && domain != AF_IB)
		return -ENOTSUP;
	if (kind != SOCK_STREAM && kind != SOCK_DGRAM)
		return -ENOTSUP;
	if (protocol && protocol != (kind == SOCK_STREAM ? IPPROTO_TCP : IPPROTO_UDP))
		return -ENOTSUP;
	pthread_once(&once, register_fork_handler);
	err = kind == SOCK_STREAM ? stream_open(domain, &rs) : dgram_open(domain, &rs);
	if (err)
		return err;
	rs->nonblocking = (type & SOCK_NONBLOCK) != 0;
	fd = rs->fd;
	if (!(type & SOCK_CLOEXEC))
		fcntl(fd, F_SETFD, 0);
	err = table_add(rs);
	if (!err)
		return fd;
	rs->ops->close(rs);
	rsock_put(rs);
	return err;
}

int rsocket(int domain, int type, int protocol)
{
	return api_return(open_socket(domain, type, protocol));
}

static int close_socket(int fd)
{
	struct rsock *rs = table_take(fd);

	if (!rs)
		return -EBADF;
	rs->ops->close(rs);
	rsock_put(rs);
	return 0;
}

int rclose(int socket)
{
	return api_return(close_socket(socket));
}

/* --- connecting ---------------------------------------------------------- */

/* Calls an operation that this kind of handle may lack. */
#define IF_CAN(rs, op, ...) ((rs)->ops->op ? (rs)->ops->op(rs, ##__VA_ARGS__) : -EOPNOTSUPP)

int rbind(int socket, const struct sockaddr *addr, socklen_t addrlen)
{
	return rsock_call(socket, IF_CAN(rs, bind, addr, addrlen));
}

int rlisten(int socket, int backlog)
{
	return rsock_call(socket, IF_CAN(rs, listen, backlog));
}

int raccept(int socket, struct sockaddr *addr, socklen_t *addrlen)
{
	return rsock_call(socket, IF_CAN(rs, accept, addr, addrlen));
}

int rconnect(int socket, const struct sockaddr *addr, socklen_t addrlen)
{
	return rsock_call(socket, IF_CAN(rs, connect, addr, addrlen));
}

int rshutdown(int socket, int how)
{
	return rsock_call(socket, IF_CAN(rs, shutdown, how));
}

/* --- names and options --------------------------------------------------- */

static int get_name(struct rsock *rs, int (*name)(struct rsock *rs, struct sockaddr_storage *ret),
		    struct sockaddr *addr, socklen_t *bytes)
{
	struct sockaddr_storage whole;
	int err = name ? name(rs, &whole) : -EOPNOTSUPP;

	if (!err)
		connect_copy_name((struct sockaddr *)&whole, addr, bytes);
	return err;
}

int rgetpeername(int socket, struct sockaddr *addr, socklen_t *addrlen)
{
	return rsock_call(socket, get_name(rs, rs->ops->peername, addr, addrlen));
}

int rgetsockname(int socket, struct sockaddr *addr, socklen_t *addrlen)
{
	return rsock_call(socket, get_name(rs, rs->ops->sockname, addr, addrlen));
}

int rsetsockopt(int socket, int level, int optname, const void *optval, socklen_t optlen)
{
	return rsock_call(socket, IF_CAN(rs, setopt, level, optname, optval, optlen));
}

int rgetsockopt(int socket, int level, int optname, void *optval, socklen_t *optlen)
{
	return rsock_call(socket, IF_CAN(rs, getopt, level, optname, optval, optlen));
}

/* Return: the bytes of a stream, or of the first datagram, which one call can receive. */
static int count_unread(struct rsock *rs)
{
	int n = 0;

	if (!rs->ops->recv)
		return -EOPNOTSUPP;
	pthread_mutex_lock(&rs->lock);
	rs->ops->progress(rs);
	if (rs->moved)
		n = -EBADF;
	else if (rs->ops == &stream_ops)
		n = (int)stream_of(rs)->in.unread;
	else if (!list_is_empty(&dgram_of(rs)->packets))
		n = (int)container_of(dgram_of(rs)->packets.next, struct dgram_packet, link)->bytes;
	pthread_mutex_unlock(&rs->lock);
	return n;
}

static bool has_failed_to_connect(struct rsock *rs)
{
	bool has_failed;

	pthread_mutex_lock(&rs->lock);
	has_failed = rs->ops == &stream_ops && stream_of(rs)->state == STREAM_FAILED;
	pthread_mutex_unlock(&rs->lock);
	return has_failed;
}

static int control_socket(struct rsock *rs, int cmd, long arg)
{
	switch (cmd) {
	case F_GETFL:
		return O_RDWR |
		       (__atomic_load_n(&rs->nonblocking, __ATOMIC_RELAXED) ? O_NONBLOCK : 0);
	case F_SETFL:
		__atomic_store_n(&rs->nonblocking, (arg & O_NONBLOCK) != 0, __ATOMIC_RELAXED);
		return 0;
	case RSOCK_MOVE:
		pthread_mutex_lock(&rs->lock);
		rs->moved = true;
		watch_notify(rs);
		pthread_mutex_unlock(&rs->lock);
		return 0;
	case RSOCK_HURRY:
		rs->hurries = true;
		return 0;
	case RSOCK_NOTE:
		roster_add(ROSTER_TCP, (const struct roster_row *)arg);
		return 0;
	case RSOCK_ACCEPT:
		return rs->ops == &stream_ops ? listen_accept_now(rs) : -EOPNOTSUPP;
	case RSOCK_UNREAD:
		return count_unread(rs);
	case RSOCK_RESTART:
		return restart_look();
	case RSOCK_FAILED:
		return has_failed_to_connect(rs);
	case F_GETFD:
		return fcntl(rs->fd, F_GETFD);
	case F_SETFD:
		return fcntl(rs->fd, F_SETFD, (int)arg);
	}
	return -ENOTSUP;
}

int rfcntl(int socket, int cmd, ... /* arg */)
{
	va_list args;
	long arg;

	va_start(args, cmd);
	arg = va_arg(args, long);
	va_end(args);
	return rsock_call(socket, control_socket(rs, cmd, arg));
}

/* --- sending and receiving ----------------------------------------------- */

/*
 * Other flags without effect are ignored, as by stock: rstream passes its receive flags to sends.
 */
#define UNSUPPORTED_FLAGS (MSG_OOB | MSG_ERRQUEUE)

static ssize_t send_to(struct rsock *rs, const struct iovec *iov, int n, int flags,
		       const struct sockaddr *addr, socklen_t bytes)
{
	const struct rs_transfer out = { .iov = iov,
					 .n_iov = n,
					 .flags = flags,
					 .addr = (struct sockaddr *)(uintptr_t)addr,
					 .addr_bytes = bytes };

	if (flags & UNSUPPORTED_FLAGS)
		return -ENOTSUP;
	if (n < 0 || n > IOV_MAX)
		return -EINVAL;
	return rs->ops->send ? rs->ops->send(rs, &out) : -EOPNOTSUPP;
}

static ssize_t recv_from(struct rsock *rs, const struct iovec *iov, int n, int flags,
			 struct sockaddr *addr, socklen_t *bytes)
{
	struct rs_transfer in = { .iov = iov,
				  .n_iov = n,
				  .flags = flags,
				  .addr = addr,
				  .addr_bytes = addr && bytes ? *bytes : 0 };
	ssize_t received;

	if (flags & UNSUPPORTED_FLAGS)
		return -ENOTSUP;
	if (n < 0 || n > IOV_MAX)
		return -EINVAL;
	received = rs->ops->recv ? rs->ops->recv(rs, &in) : -EOPNOTSUPP;
	if (received >= 0 && addr && bytes)
		*bytes = in.addr_bytes;
	return received;
}

/* Public functions do not call each other, because a program may replace each of them. */
static ssize_t send_buffer(int socket, const void *buf, size_t len, int flags)
{
	const struct iovec iov = { (void *)(uintptr_t)buf, len };

	return rsock_call(socket, send_to(rs, &iov, 1, flags, NULL, 0));
}

ssize_t rsendto(int socket, const void *buf, size_t len, int flags,
		const struct sockaddr *dest_addr, socklen_t addrlen)
{
	const struct iovec iov = { (void *)(uintptr_t)buf, len };

	return rsock_call(socket, rs->ops == &stream_ops && (dest_addr || addrlen)
					  ? -EISCONN
					  : send_to(rs, &iov, 1, flags, dest_addr, addrlen));
}

ssize_t rsend(int socket, const void *buf, size_t len, int flags)
{
	return send_buffer(socket, buf, len, flags);
}

ssize_t rwrite(int socket, const void *buf, size_t count)
{
	return send_buffer(socket, buf, count, 0);
}

ssize_t rwritev(int socket, const struct iovec *iov, int iovcnt)
{
	return rsock_call(socket, send_to(rs, iov, iovcnt, 0, NULL, 0));
}

static bool has_control_data(const struct msghdr *msg)
{
	return msg->msg_control && msg->msg_controllen;
}

/* A stream sends to its peer, whatever the name is, as stock does. */
static ssize_t send_message(struct rsock *rs, const struct msghdr *msg, int flags)
{
	if (has_control_data(msg))
		return -ENOTSUP;
	if (msg->msg_iovlen > IOV_MAX)
		return -EMSGSIZE;
	return send_to(rs, msg->msg_iov, (int)msg->msg_iovlen, flags, msg->msg_name,
		       msg->msg_namelen);
}

ssize_t rsendmsg(int socket, const struct msghdr *msg, int flags)
{
	return rsock_call(socket, send_message(rs, msg, flags));
}

static ssize_t recv_buffer(int socket, void *buf, size_t len, int flags, struct sockaddr *addr,
			   socklen_t *bytes)
{
	const struct iovec iov = { buf, len };

	return rsock_with(socket, recv_from(rs, &iov, 1, flags, addr, bytes));
}

ssize_t rrecvfrom(int socket, void *buf, size_t len, int flags, struct sockaddr *src_addr,
		  socklen_t *addrlen)
{
	return recv_buffer(socket, buf, len, flags, src_addr, addrlen);
}

ssize_t rrecv(int socket, void *buf, size_t len, int flags)
{
	return recv_buffer(socket, buf, len, flags, NULL, NULL);
}

ssize_t rread(int socket, void *buf, size_t count)
{
	return recv_buffer(socket, buf, count, 0, NULL, NULL);
}

ssize_t rreadv(int socket, const struct iovec *iov, int iovcnt)
{
	return rsock_with(socket, recv_from(rs, iov, iovcnt, 0, NULL, NULL));
}

static ssize_t recv_message(struct rsock *rs, struct msghdr *msg, int flags)
{
	ssize_t received;

	if (has_control_data(msg))
		return -ENOTSUP;
	if (msg->msg_iovlen > IOV_MAX)
		return -EMSGSIZE;
	received = recv_from(rs, msg->msg_iov, (int)msg->msg_iovlen, flags, msg->msg_name,
			     &msg->msg_namelen);
	if (received >= 0)
		msg->msg_flags = 0;
	return received;
}

ssize_t rrecvmsg(int socket, struct msghdr *msg, int flags)
{
	return rsock_with(socket, recv_message(rs, msg, flags));
}

/* --- buffers that the peer writes into ----------------------------------- */

/* For streams only. */
#define IF_STREAM(rs, call) ((rs)->ops == &stream_ops ? (call) : -EOPNOTSUPP)

off_t riomap(int socket, void *buf, size_t len, int prot, int flags, off_t offset)
{
	(void)flags;
	return rsock_call(socket, IF_STREAM(rs, iomap_add(stream_of(rs), buf, len, prot, offset)));
}

int riounmap(int socket, void *buf, size_t len)
{
	return rsock_call(socket, IF_STREAM(rs, iomap_remove(stream_of(rs), buf, len)));
}

size_t riowrite(int socket, const void *buf, size_t count, off_t offset, int flags)
{
	const struct iovec iov = { (void *)(uintptr_t)buf, count };
	const struct rs_transfer out = { .iov = &iov, .n_iov = 1, .flags = flags };

	return (size_t)rsock_call(socket, IF_STREAM(rs, stream_write(stream_of(rs), &out, offset)));
}
