/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The device node of a port: see umad_node.h.
 */
#include "mad/umad_node.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "mad/umad_owner.h"

#define QP1	 1
#define QP1_QKEY 0x80010000

_Static_assert(sizeof(struct ib_user_mad) == 64, "umad's header, with the P_Key index");

int umad_open_node(const char *device, uint8_t port_num, const char *node)
{
	char path[PATH_MAX];
	int fd;

	/* Not by umad_open_port(): it looks up in sysfs, each time, what we know, and does not ask
	 * for close-on-exec. To libibumad a port is its descriptor. */
	if (node[0]) {
		snprintf(path, sizeof(path), "%s/%s", umad_places.dev, node);
		fd = umad_places.open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC);
		return fd < 0 ? -errno : fd;
	}
	/* A stand-in for libibumad may know of a device that the kernel does not. The real library
	 * is not to be asked for one that the kernel knows: it writes to stderr what it does not
	 * find. */
	fd = umad_open_port(device, port_num);
	if (fd < 0)
		return -ENXIO;
	fcntl(fd, F_SETFD, FD_CLOEXEC);
	fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
	return fd;
}

int umad_error(int err)
{
	return err == EIO ? -ENODEV : -err;
}

void umad_path_to_addr(const struct mad_path *path, struct ib_mad_addr *addr)
{
	memset(addr, 0, sizeof(*addr));
	addr->qpn = htonl(QP1);
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
