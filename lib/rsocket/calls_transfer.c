/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The public calls that send and receive: all of them are rsendmsg() and rrecvmsg() with less said.
 */
#include <errno.h>
#include <limits.h>
#include <rdma/rsocket.h>

#include "lib/rsocket/calls.h"

/* What does not exist here. Other flags that mean nothing to us are ignored, as stock does: rstream
 * sends with the flags that it receives with. */
#define NO_FLAGS (MSG_OOB | MSG_ERRQUEUE)

static ssize_t send_to(struct rsock *rs, const struct iovec *iov, int n, int flags,
		       const struct sockaddr *addr, socklen_t bytes)
{
	const struct rs_transfer out = { .iov = iov,
					 .n_iov = n,
					 .flags = flags,
					 .addr = (struct sockaddr *)(uintptr_t)addr,
					 .addr_bytes = bytes };

	if (flags & NO_FLAGS)
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

	if (flags & NO_FLAGS)
		return -ENOTSUP;
	if (n < 0 || n > IOV_MAX)
		return -EINVAL;
	received = rs->ops->recv ? rs->ops->recv(rs, &in) : -EOPNOTSUPP;
	if (received >= 0 && addr && bytes)
		*bytes = in.addr_bytes;
	return received;
}

/* --- sending ------------------------------------------------------------- */

/* Public functions do not call each other: a program may have its own in front of them. */
static ssize_t send_buffer(int socket, const void *buf, size_t len, int flags,
			   const struct sockaddr *addr, socklen_t bytes)
{
	const struct iovec iov = { (void *)(uintptr_t)buf, len };

	return rsock_call(socket, send_to(rs, &iov, 1, flags, addr, bytes));
}

ssize_t rsendto(int socket, const void *buf, size_t len, int flags,
		const struct sockaddr *dest_addr, socklen_t addrlen)
{
	return send_buffer(socket, buf, len, flags, dest_addr, addrlen);
}

ssize_t rsend(int socket, const void *buf, size_t len, int flags)
{
	return send_buffer(socket, buf, len, flags, NULL, 0);
}

ssize_t rwrite(int socket, const void *buf, size_t count)
{
	return send_buffer(socket, buf, count, 0, NULL, 0);
}

ssize_t rwritev(int socket, const struct iovec *iov, int iovcnt)
{
	return rsock_call(socket, send_to(rs, iov, iovcnt, 0, NULL, 0));
}

static ssize_t send_message(struct rsock *rs, const struct msghdr *msg, int flags)
{
	if (msg->msg_controllen)
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

/* --- receiving ----------------------------------------------------------- */

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

	if (msg->msg_controllen)
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
