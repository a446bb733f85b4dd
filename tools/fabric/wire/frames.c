/* SPDX-License-Identifier: BSD-2-Clause */
/* Forwarding of RoCE v2 packets between processes: see frames.h. */
#include "tools/fabric/wire/frames.h"

#include <errno.h>
#include <sys/socket.h>
#include <sys/uio.h>

void fab_frames_forward(int fd, const struct fab_folder *folder, unsigned int slot,
			const struct fab_frames *frames, const uint8_t *bytes)
{
	struct iovec iov[2] = {
		{ .iov_base = (void *)(uintptr_t)frames, .iov_len = sizeof(*frames) },
		{ .iov_base = (void *)(uintptr_t)bytes, .iov_len = frames->bytes },
	};
	char path[FAB_PATH_BYTES];
	struct sockaddr_un addr;
	struct msghdr msg = {
		.msg_name = &addr, .msg_namelen = sizeof(addr), .msg_iov = iov, .msg_iovlen = 2
	};

	fab_folder_slot(folder, folder->host, slot, path);
	fab_folder_sockaddr(path, &addr);
	if (sendmsg(fd, &msg, MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
		errno = 0; /* lost, as with UDP */
}
