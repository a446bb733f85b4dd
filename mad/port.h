/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Who delivers MADs: a port on which the CM class is ours. cmportd sends and receives through this
 * interface and does not know what stands behind it: libibumad (umad.c), or a test.
 */
#ifndef MAD_PORT_H
#define MAD_PORT_H

#include <stdbool.h>
#include <stdint.h>

#include "mad/cm_msg.h"

/* Where a MAD goes to or came from, seen from the local port. All that a reply needs. */
struct mad_path {
	uint16_t pkey_index;
	uint16_t dlid; /* host byte order; 0 on RoCE */
	uint8_t sl;
	uint8_t path_bits;
	bool grh; /* the fields below count: always on RoCE */
	uint8_t sgid_index;
	uint8_t hop_limit;
	uint8_t traffic_class;
	uint16_t sgid_tag; /* cmportd's, of the entry that sgid_index is to stand for; 0: unknown */
	uint32_t flow_label;
	struct mad_gid dgid; /* the peer's */
};

/**
 * mad_path_peer() - the GID that stands for the peer of a path
 *
 * Return: the peer's GID; without a GRH, within an InfiniBand subnet, one made of its LID.
 */
static inline struct mad_gid mad_path_peer(const struct mad_path *path)
{
	struct mad_gid gid = { { 0 } };

	if (path->grh)
		return path->dgid;
	gid.raw[14] = (uint8_t)(path->dlid >> 8);
	gid.raw[15] = (uint8_t)path->dlid;
	return gid;
}

struct mad_port;

struct mad_port_ops {
	int (*send)(struct mad_port *port, const struct mad_path *path,
		    const uint8_t mad[MAD_BYTES]);
	int (*receive)(struct mad_port *port, struct mad_path *path, uint8_t mad[MAD_BYTES]);
	void (*close)(struct mad_port *port);
};

struct mad_port {
	const struct mad_port_ops *ops;
	int fd;		     /* to be polled, not read; readable when receive() has something */
	uint32_t source_qpn; /* of the message that was received last; 0: not known */
};

/**
 * mad_port_send() - put one MAD on the wire
 *
 * Any thread may call it, several at once. May block while the kernel resolves the peer's link
 * address: resolve it first. The transaction id's low half is replaced by a fresh one, its high
 * half belongs to the kernel's MAD agent.
 *
 * Return: 0, or -errno: -ENODEV when the device is gone, -EHOSTUNREACH, -ETIMEDOUT and the like
 * when the kernel cannot route to the peer, -EAGAIN when the send queue is full.
 */
static inline int mad_port_send(struct mad_port *port, const struct mad_path *path,
				const uint8_t mad[MAD_BYTES])
{
	return port->ops->send(port, path, mad);
}

/**
 * mad_port_receive() - take one MAD that has arrived; never blocks
 * @path: filled: the way back to the sender
 * @mad:  filled; a shorter MAD is padded with zeros
 *
 * One thread at a time. For what is there already the descriptor need not be readable any more once
 * a call was made: whoever stops before -EAGAIN comes back without waiting for it.
 *
 * Return: 0; -EAGAIN when there is none; -ENOMSG when what had come was of no use, and there may be
 * more; -ENODEV when the device is gone; other -errno.
 */
static inline int mad_port_receive(struct mad_port *port, struct mad_path *path,
				   uint8_t mad[MAD_BYTES])
{
	return port->ops->receive(port, path, mad);
}

/**
 * mad_port_close() - give the port back and free it; NULL is allowed
 *
 * The CM class of the port is free for others when it returns.
 */
static inline void mad_port_close(struct mad_port *port)
{
	if (port)
		port->ops->close(port);
}

#endif
