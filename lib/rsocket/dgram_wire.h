/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Wire formats of datagram sockets: the header of each datagram on the queue pair, which identifies
 * its sender, and the header on the UDP socket, which locates a queue pair. Both have two sizes,
 * for IPv4 and IPv6.
 */
#ifndef LIB_RSOCKET_DGRAM_WIRE_H
#define LIB_RSOCKET_DGRAM_WIRE_H

#include <sys/types.h>

#include "lib/net/addr.h"
#include "mad/wire.h"

#define DGRAM_UD_BYTES_MAX  24
#define DGRAM_UDP_BYTES_MAX 28
#define DGRAM_SLOT_BYTES    2048 /* a datagram with its header */

enum dgram_op {
	DGRAM_DATA = 0,	   /* a datagram follows; request a response */
	DGRAM_CONTROL = 7, /* the response */
};

/* On the UDP socket: the location of the sender's queue pair. */
struct dgram_udp {
	enum dgram_op op;
	uint32_t qpn;
	union addr addr; /* of its device's port; the port number is 0 */
};

/**
 * dgram_ud_encode() - encode the header of a datagram
 * @from: the sender's UDP address
 * @wire: room for DGRAM_UD_BYTES_MAX
 *
 * Return: the size of the header in bytes.
 */
size_t dgram_ud_encode(const union addr *from, uint8_t *wire);

/**
 * dgram_ud_decode() - decode the header of a datagram
 * @bytes: size of the whole datagram
 *
 * Return: the size of the header in bytes, or -EBADMSG if it is invalid.
 */
ssize_t dgram_ud_decode(const uint8_t *wire, size_t bytes, union addr *ret);

/** dgram_udp_encode(), dgram_udp_decode(): the same for the UDP socket. */
size_t dgram_udp_encode(const struct dgram_udp *header, uint8_t *wire);
ssize_t dgram_udp_decode(const uint8_t *wire, size_t bytes, struct dgram_udp *ret);

#endif
