/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The device node of a port: see umad_node.h.
 */
#include "mad/umad_node.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "mad/umad_owner.h"

#define QP1_QKEY      0x80010000
#define MESSAGE_BYTES 2048  /* size of an Omni-Path MAD: a smaller buffer would block the queue */
#define WHOLE_BYTES   65536 /* a table of some 370 records */

_Static_assert(sizeof(struct ib_user_mad) == 64, "umad's header, with the P_Key index");

struct message {
	struct ib_user_mad head;
	uint8_t mad[MESSAGE_BYTES];
};

int umad_open_node(const char *device, uint8_t port_num, const char *node)
{
	char path[PATH_MAX];
	int fd;

	/*
	 * Not umad_open_port(): it looks up in sysfs again what we know, and does not set
	 * close-on-exec. To libibumad a port is its descriptor.
	 */
	if (node[0]) {
		snprintf(path, sizeof(path), "%s/%s", umad_dirs.dev, node);
		fd = umad_dirs.open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC);
		return fd < 0 ? -errno : fd;
	}
	/*
	 * A substitute for libibumad may have devices that the kernel does not know. Do not ask the
	 * real library for others: it writes to stderr when it finds none.
	 */
	fd = umad_open_port(device, port_num);
	if (fd < 0)
		return -ENXIO;
	fcntl(fd, F_SETFD, FD_CLOEXEC);
	fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
	return fd;
}

/* A removed device returns EIO. */
static int error_of(int err)
{
	return err == EIO ? -ENODEV : -err;
}

static void path_to_addr(const struct mad_path *path, uint32_t qpn, struct ib_mad_addr *addr)
{
	memset(addr, 0, sizeof(*addr));
	addr->qpn = htonl(qpn);
	addr->qkey = htonl(QP1_QKEY);
	addr->lid = htons(path->dlid);
	addr->sl = path->sl;
	addr->path_bits = path->path_bits;
	addr->pkey_index = path->pkey_index;
	if (!path->grh)
		return;
	addr->grh_present = 1;
	addr->gid_index = path->sgid_index;
	addr->hop_limit = path->hop_limit;
	addr->traffic_class = path->traffic_class;
	addr->flow_label = htonl(path->flow_label);
	memcpy(addr->gid, path->dgid.raw, sizeof(addr->gid));
}

int umad_write(int fd, uint32_t agent, const struct mad_path *path, uint32_t qpn,
	       const uint8_t mad[MAD_BYTES], unsigned int wait_ms)
{
	struct message message; /* large, so not zeroed */
	ssize_t n;

	message.head = (struct ib_user_mad){ .agent_id = agent, .timeout_ms = wait_ms };
	path_to_addr(path, qpn, &message.head.addr);
	memcpy(message.mad, mad, MAD_BYTES);
	do
		n = write(fd, &message, offsetof(struct message, mad) + MAD_BYTES);
	while (n < 0 && errno == EINTR);
	return n < 0 ? error_of(errno) : 0;
}

int umad_read(int fd, struct ib_user_mad *ret_head, uint8_t ret_mad[MAD_BYTES])
{
	struct message message;
	size_t bytes;
	ssize_t n;

	do
		n = read(fd, &message, sizeof(message));
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return error_of(errno);
	if ((size_t)n < sizeof(message.head))
		return -ENODEV;
	bytes = (size_t)n - sizeof(message.head);
	if (bytes > MAD_BYTES)
		bytes = MAD_BYTES;
	*ret_head = message.head;
	memcpy(ret_mad, message.mad, bytes);
	memset(ret_mad + bytes, 0, MAD_BYTES - bytes);
	return 0;
}

static int make_room(struct umad_buffer *buffer, size_t room)
{
	uint8_t *at;

	if (room <= buffer->room)
		return 0;
	at = realloc(buffer->at, room);
	if (!at)
		return -ENOMEM;
	buffer->at = at;
	buffer->room = room;
	return 0;
}

/*
 * Return: what read() does; after ENOSPC the message stays, and the kernel has stored its length.
 */
static ssize_t read_whole(int fd, const struct umad_buffer *buffer, struct ib_user_mad *ret_head)
{
	ssize_t n;

	do
		n = read(fd, buffer->at, buffer->room);
	while (n < 0 && errno == EINTR);
	memcpy(ret_head, buffer->at, sizeof(*ret_head));
	return n;
}

int umad_read_whole(int fd, struct umad_buffer *buffer, size_t *ret_bytes)
{
	struct ib_user_mad head;
	int err = make_room(buffer, WHOLE_BYTES);
	ssize_t n;

	if (err)
		return err;
	n = read_whole(fd, buffer, &head);
	if (n < 0 && errno == ENOSPC) {
		err = make_room(buffer, head.length);
		n = err ? 0 : read_whole(fd, buffer, &head);
	}
	if (err || n < 0)
		return err ? err : error_of(errno);
	if ((size_t)n < sizeof(head))
		return -ENODEV;
	*ret_bytes = (size_t)n - sizeof(head);
	if (head.length <= buffer->room)
		return 0;
	err = make_room(buffer, head.length); /* a stand-in's socket has cut it off */
	return err ? err : -EMSGSIZE;
}
