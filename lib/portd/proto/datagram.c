/* SPDX-License-Identifier: BSD-2-Clause */
/* Datagrams on sockets, and the descriptors passed with them: see datagram.h. */
#include "lib/portd/proto/datagram.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>

#include "base/clock.h"

/* Room for two descriptors; the kernel closes any others. */
union control {
	struct cmsghdr align;
	char room[CMSG_SPACE(2 * sizeof(int))];
};

union control_of_all {
	struct cmsghdr align;
	char room[CMSG_SPACE(PORTD_FDS_MAX * sizeof(int))];
};

static ssize_t send_with_fds(int to, const struct portd_datagram *datagram, const int *fd,
			     unsigned int n_fds, int flags)
{
	union control control = { { 0 } };
	struct iovec iov = { .iov_len = datagram->bytes };
	struct msghdr msg = { .msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_control = &control,
			      .msg_controllen = CMSG_SPACE(n_fds * sizeof(int)) };
	const void *data = datagram->data;

	memcpy(&iov.iov_base, &data, sizeof(data)); /* not written to */
	control.align.cmsg_level = SOL_SOCKET;
	control.align.cmsg_type = SCM_RIGHTS;
	control.align.cmsg_len = CMSG_LEN(n_fds * sizeof(int));
	memcpy(CMSG_DATA(&control.align), fd, n_fds * sizeof(int));
	return sendmsg(to, &msg, flags);
}

/*
 * A call after a signal may wait for the whole SO_SNDTIMEO again, so frequent signals would make it
 * endless. *until_ns is 0 at the first signal. Return: whether to call again.
 */
static bool has_time_left(int to, uint64_t *until_ns)
{
	struct timeval limit = { .tv_sec = 0 };
	socklen_t bytes = sizeof(limit);

	if (!*until_ns && !getsockopt(to, SOL_SOCKET, SO_SNDTIMEO, &limit, &bytes))
		*until_ns = timerisset(&limit)
				    ? clock_ns() + (uint64_t)limit.tv_sec * CLOCK_NS_PER_S +
					      (uint64_t)limit.tv_usec * 1000
				    : UINT64_MAX;
	return clock_ns() < *until_ns;
}

/* Most datagrams pass no descriptors: for these send() and recv() cost less. */
int portd_datagram_send(int to, const struct portd_datagram *datagram, const int fd[2], int flags)
{
	unsigned int n_fds = fd ? (fd[0] >= 0) + (fd[1] >= 0) : 0;
	uint64_t until_ns = 0;
	ssize_t n;

	flags |= MSG_NOSIGNAL;
	do
		n = n_fds ? send_with_fds(to, datagram, fd, n_fds, flags)
			  : send(to, datagram->data, datagram->bytes, flags);
	while (n < 0 && errno == EINTR && has_time_left(to, &until_ns));
	if (n >= 0)
		return 0;
	return errno == EINTR ? -EAGAIN : -errno;
}

/* @n: number of bytes received, or -1. Return: @n. */
static ssize_t take_bytes(struct portd_datagram *ret, ssize_t n, bool is_truncated)
{
	ret->bytes = n < 0 ? 0 : (size_t)n;
	ret->at = 0;
	if (is_truncated) {
		ret->data[0] = 0xff; /* no record begins with this byte */
		ret->bytes = 1;
	}
	return n;
}

static ssize_t receive_alone(int from, struct portd_datagram *ret, int flags)
{
	ssize_t n;

	do
		n = recv(from, ret->data, sizeof(ret->data), flags | MSG_TRUNC); /* its length */
	while (n < 0 && errno == EINTR);
	return take_bytes(ret, n, n > (ssize_t)sizeof(ret->data));
}

/*
 * The descriptors are copied to @ret_fd, which has room for what fits into @control. There may be
 * credentials, too: a socket from systemd can have the option.
 */
static ssize_t receive(int from, struct portd_datagram *ret, struct cmsghdr *control, size_t room,
		       int *ret_fd, int flags)
{
	struct iovec iov = { ret->data, sizeof(ret->data) };
	struct msghdr msg = {
		.msg_iov = &iov, .msg_iovlen = 1, .msg_control = control, .msg_controllen = room
	};
	struct cmsghdr *cmsg;
	ssize_t n;

	do
		n = recvmsg(from, &msg, MSG_CMSG_CLOEXEC | flags);
	while (n < 0 && errno == EINTR);
	take_bytes(ret, n, n >= 0 && msg.msg_flags & MSG_TRUNC);
	cmsg = n < 0 ? NULL : CMSG_FIRSTHDR(&msg);
	for (; cmsg; cmsg = CMSG_NXTHDR(&msg, cmsg))
		if (cmsg->cmsg_level == SOL_SOCKET && cmsg->cmsg_type == SCM_RIGHTS)
			memcpy(ret_fd, CMSG_DATA(cmsg), cmsg->cmsg_len - CMSG_LEN(0));
	return n;
}

ssize_t portd_datagram_receive(int from, struct portd_datagram *ret, int ret_fd[2], int flags)
{
	union control control;

	if (!ret_fd)
		return receive_alone(from, ret, flags);
	ret_fd[0] = ret_fd[1] = -1;
	return receive(from, ret, &control.align, sizeof(control), ret_fd, flags);
}

ssize_t portd_datagram_receive_all(int from, struct portd_datagram *ret,
				   int ret_fd[PORTD_FDS_MAX + 1])
{
	union control_of_all control;

	memset(ret_fd, 0xff, (PORTD_FDS_MAX + 1) * sizeof(int)); /* -1 */
	return receive(from, ret, &control.align, sizeof(control), ret_fd, MSG_DONTWAIT);
}
