/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A port on which we own the CM class: sends and receives MADs. Its callers do not know whether
 * libibumad (umad.c) or a test implements it.
 */
#ifndef MAD_PORT_H
#define MAD_PORT_H

#include <stdbool.h>
#include <stdint.h>

#include "mad/cm_msg.h"

/* Destination or source of a MAD, as seen from the local port: all that a reply needs. */
struct mad_path {
	uint16_t pkey_index;
	uint16_t dlid; /* in host byte order; 0 on RoCE */
	uint8_t sl;
	uint8_t path_bits;
	bool grh; /* always on RoCE; the fields below are valid */
	uint8_t sgid_index;
	uint8_t hop_limit;
	uint8_t traffic_class;
	uint16_t sgid_tag; /* cmportd's tag of the entry that sgid_index refers to; 0: unknown */
	uint32_t flow_label;
	struct mad_gid dgid; /* the peer's */
};

/**
 * mad_path_peer() - the GID that identifies the peer of a path
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
	bool (*has_queued)(struct mad_port *port, const struct mad_gid *dgid); /* NULL: never */
};

struct mad_port {
	const struct mad_port_ops *ops;
	int fd;		     /* to be polled, not read; readable when receive() has a MAD */
	uint32_t source_qpn; /* of the last received message; 0: unknown */
};

/**
 * mad_port_send() - send one MAD
 *
 * Thread-safe. May block while the kernel resolves the peer's link address, so resolve it first.
 * Replaces the low half of the transaction id by a unique one; the high half belongs to the
 * kernel's MAD agent.
 *
 * Return: 0; -ENODEV when the device is gone; -EHOSTUNREACH, -ETIMEDOUT and the like when the
 * kernel cannot route to the peer; -EAGAIN when the send queue is full; other -errno.
 */
static inline int mad_port_send(struct mad_port *port, const struct mad_path *path,
				const uint8_t mad[MAD_BYTES])
{
	return port->ops->send(port, path, mad);
}

/**
 * mad_port_has_queued() - return whether a sent message to a peer still waits to be written
 *
 * Thread-safe. A message that is sent some other way would overtake it.
 */
static inline bool mad_port_has_queued(struct mad_port *port, const struct mad_gid *dgid)
{
	return port->ops->has_queued && port->ops->has_queued(port, dgid);
}

/**
 * mad_port_receive() - receive one MAD; never blocks
 * @path: filled in: path back to the sender
 * @mad:  filled in; a shorter MAD is padded with zeros
 *
 * For one thread at a time. After a call, the descriptor may no longer be readable for MADs that
 * have already arrived: a caller that stops before -EAGAIN must come back without polling.
 *
 * Return: 0; -EAGAIN when there is none; -ENOMSG when a MAD was dropped as invalid, and there may
 * be more; -ENODEV when the device is gone; other -errno.
 */
static inline int mad_port_receive(struct mad_port *port, struct mad_path *path,
				   uint8_t mad[MAD_BYTES])
{
	return port->ops->receive(port, path, mad);
}

/**
 * mad_port_close() - release and free the port; NULL is allowed
 *
 * On return, others can register for the CM class of the port.
 */
static inline void mad_port_close(struct mad_port *port)
{
	if (port)
		port->ops->close(port);
}

#endif
