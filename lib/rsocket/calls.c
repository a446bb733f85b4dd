/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The public calls on a socket: each finds the handle, keeps it while it is inside, and goes
 * through its operations. Transfers are in calls_transfer.c, polling in poll.c.
 */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <rdma/rsocket.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "lib/rsocket/calls.h"
#include "lib/rsocket/connect.h"
#include "lib/rsocket/dgram.h"
#include "lib/rsocket/iomap.h"
#include "lib/rsocket/service.h"
#include "lib/rsocket/slot.h"
#include "lib/rsocket/table.h"
#include "lib/rsocket/wait.h"

#define TYPE_FLAGS (SOCK_CLOEXEC | SOCK_NONBLOCK)

/* --- making and closing -------------------------------------------------- */

static void forget_parent(void)
{
	service_after_fork();
	wait_after_fork();
	slot_after_fork();
	table_after_fork();
}

static void handle_fork(void)
{
	pthread_atfork(NULL, NULL, forget_parent);
}

static int check_kind(int domain, int type, int protocol)
{
	int stream_protocol = type == SOCK_STREAM ? IPPROTO_TCP : IPPROTO_UDP;

	if (domain != AF_INET && domain != AF_INET6 && domain != AF_IB)
		return -ENOTSUP;
	if (type != SOCK_STREAM && type != SOCK_DGRAM)
		return -ENOTSUP;
	return protocol && protocol != stream_protocol ? -ENOTSUP : 0;
}

static int open_socket(int domain, int type, int protocol)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	struct rsock *rs = NULL;
	int kind = type & ~TYPE_FLAGS;
	int fd, err = check_kind(domain, kind, protocol);

	if (err)
		return err;
	pthread_once(&once, handle_fork);
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
	int err;

	if (!rs)
		return -EBADF;
	err = rs->ops->close(rs);
	if (err) {
		table_add(rs);
		return err;
	}
	rsock_put(rs);
	return 0;
}

int rclose(int socket)
{
	return api_return(close_socket(socket));
}

/* --- connecting ---------------------------------------------------------- */

/* A call that the kind of handle may not have. */
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

static int control(struct rsock *rs, int cmd, long arg)
{
	switch (cmd) {
	case F_GETFL:
		return O_RDWR |
		       (__atomic_load_n(&rs->nonblocking, __ATOMIC_RELAXED) ? O_NONBLOCK : 0);
	case F_SETFL:
		__atomic_store_n(&rs->nonblocking, (arg & O_NONBLOCK) != 0, __ATOMIC_RELAXED);
		return 0;
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
	return rsock_call(socket, control(rs, cmd, arg));
}

/* --- memory by name ------------------------------------------------------ */

/* Only streams have it. */
static struct stream *as_stream(struct rsock *rs)
{
	return rs->ops == &stream_ops ? stream_of(rs) : NULL;
}

static off_t map(struct rsock *rs, void *buf, size_t len, int prot, off_t offset)
{
	return as_stream(rs) ? iomap_add(as_stream(rs), buf, len, prot, offset) : -EOPNOTSUPP;
}

static int unmap(struct rsock *rs, const void *buf, size_t len)
{
	return as_stream(rs) ? iomap_remove(as_stream(rs), buf, len) : -EOPNOTSUPP;
}

static ssize_t map_write(struct rsock *rs, const void *buf, size_t count, off_t offset, int flags)
{
	return as_stream(rs) ? iomap_write(as_stream(rs), buf, count, offset, flags) : -EOPNOTSUPP;
}

off_t riomap(int socket, void *buf, size_t len, int prot, int flags, off_t offset)
{
	(void)flags;
	return rsock_call(socket, map(rs, buf, len, prot, offset));
}

int riounmap(int socket, void *buf, size_t len)
{
	return (int)rsock_call(socket, unmap(rs, buf, len));
}

size_t riowrite(int socket, const void *buf, size_t count, off_t offset, int flags)
{
	return (size_t)rsock_call(socket, map_write(rs, buf, count, offset, flags));
}
