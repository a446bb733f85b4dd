/* SPDX-License-Identifier: BSD-2-Clause */
/* Exchange of a slot number for a descriptor: see share.h. */
#include "tools/fabric/udp/share.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>

#include "base/fd.h"

#define ANSWER_S 10

/* The response: an errno, and a descriptor if it is 0. */
struct answer {
	struct msghdr msg;
	struct iovec iov;
	int err;
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control;
};

static void prepare_answer(struct answer *answer)
{
	memset(answer, 0, sizeof(*answer));
	answer->iov = (struct iovec){ &answer->err, sizeof(answer->err) };
	answer->msg.msg_iov = &answer->iov;
	answer->msg.msg_iovlen = 1;
	answer->msg.msg_control = answer->control.bytes;
	answer->msg.msg_controllen = sizeof(answer->control.bytes);
}

static int receive_answer(int conn)
{
	struct answer answer;
	struct cmsghdr *header;
	int fd;

	prepare_answer(&answer);
	if (recvmsg(conn, &answer.msg, MSG_CMSG_CLOEXEC) != sizeof(answer.err))
		return -EIO;
	header = CMSG_FIRSTHDR(&answer.msg);
	if (answer.err || !header || header->cmsg_type != SCM_RIGHTS)
		return answer.err ? -answer.err : -EIO;
	memcpy(&fd, CMSG_DATA(header), sizeof(fd));
	return fd;
}

int share_request_socket(const struct fab_folder *folder, unsigned int slot, int *ret_conn)
{
	int conn = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	struct timeval limit = { .tv_sec = ANSWER_S };
	uint16_t number = (uint16_t)slot;
	char path[FAB_PATH_BYTES];
	struct sockaddr_un addr;
	int fd;

	if (conn < 0)
		return -errno;
	fab_folder_udp(folder, path);
	fab_folder_sockaddr(path, &addr);
	if (setsockopt(conn, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)) ||
	    connect(conn, (struct sockaddr *)&addr, sizeof(addr)) ||
	    send(conn, &number, sizeof(number), MSG_NOSIGNAL) < 0)
		return fd_give_up(conn);
	fd = receive_answer(conn);
	if (fd < 0)
		fd_close(&conn);
	*ret_conn = conn;
	return fd;
}

uint16_t share_read_slot(int conn)
{
	uint16_t slot = 0;

	return recv(conn, &slot, sizeof(slot), MSG_DONTWAIT) == sizeof(slot) ? slot : 0;
}

void share_send_socket(int conn, int fd)
{
	struct answer answer;

	prepare_answer(&answer);
	if (fd < 0) {
		answer.err = -fd;
		answer.msg.msg_controllen = 0;
	} else {
		answer.control.header.cmsg_len = CMSG_LEN(sizeof(fd));
		answer.control.header.cmsg_level = SOL_SOCKET;
		answer.control.header.cmsg_type = SCM_RIGHTS;
		memcpy(CMSG_DATA(&answer.control.header), &fd, sizeof(fd));
	}
	/* A process that has ended needs no response. */
	if (sendmsg(conn, &answer.msg, MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
		errno = 0;
}
