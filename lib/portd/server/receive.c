/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What comes from a client: a datagram at a time, into server->in. Called by client.c.
 */
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/portd/server/state.h"

#define FDS_ROOM 2

static void take(struct server *server, size_t bytes, bool is_whole)
{
	if (!is_whole)
		server->in.data[0] = 0xff; /* no record begins like this */
	server->in.bytes = is_whole ? bytes : 1;
	server->in.at = 0;
}

/* One is enough; but where one has room there is, for alignment, room for a second one. */
static int take_fd(struct msghdr *msg)
{
	struct cmsghdr *cmsg = CMSG_FIRSTHDR(msg);
	int fds[FDS_ROOM] = { -1, -1 };

	if (!cmsg || cmsg->cmsg_level != SOL_SOCKET || cmsg->cmsg_type != SCM_RIGHTS)
		return -1;
	memcpy(fds, CMSG_DATA(cmsg), cmsg->cmsg_len - CMSG_LEN(0));
	if (fds[1] >= 0)
		close(fds[1]);
	return fds[0];
}

/* Descriptors that a client sends along without room for them are closed by the kernel. */
ssize_t receive_questions(struct server *server, int from, int *ret_fd)
{
	union {
		struct cmsghdr align;
		char room[CMSG_SPACE(FDS_ROOM * sizeof(int))];
	} control;
	struct iovec iov = { server->in.data, sizeof(server->in.data) };
	struct msghdr msg = { .msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_control = &control,
			      .msg_controllen = sizeof(control) };
	ssize_t n = recvmsg(from, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);

	*ret_fd = -1;
	if (n < 0)
		return n;
	*ret_fd = take_fd(&msg);
	take(server, (size_t)n, !(msg.msg_flags & MSG_TRUNC));
	return n;
}

/* Without room for descriptors, of which none is expected here. */
ssize_t receive_messages(struct server *server, int from)
{
	const size_t room = sizeof(server->in.data);
	ssize_t n = recv(from, server->in.data, room, MSG_DONTWAIT | MSG_TRUNC);

	if (n >= 0)
		take(server, (size_t)n, (size_t)n <= room);
	return n;
}
