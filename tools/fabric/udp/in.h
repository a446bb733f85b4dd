/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Receiving RoCE v2: the socket that has UDP port 4791 of a host, for IPv4 and IPv6. What comes is
 * given as the kernel gives it: one packet, or several of one sender and size at once (UDP_GRO).
 */
#ifndef FABRIC_UDP_IN_H
#define FABRIC_UDP_IN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tools/fabric/wire/frames.h"
#include "tools/fabric/wire/packet.h"

/**
 * udp_in_open() - bind port 4791
 *
 * Return: a descriptor, non-blocking and closed on exec; -EADDRINUSE if somebody has the port;
 * -errno.
 */
int udp_in_open(void);

/**
 * udp_in_receive() - take what came
 * @ret:       port_num is left to the caller; the GIDs are addresses of IP
 * @ret_bytes: FAB_FRAMES_BYTES_MAX of room; ret->bytes of payloads
 *
 * Return: false if nothing is there.
 */
bool udp_in_receive(int fd, struct fab_frames *ret, uint8_t *ret_bytes);

/**
 * udp_in_packet() - check and decode one payload of what came
 * @ret:         filled, with what IP says
 * @ret_payload: in @bytes; ret->bytes of it
 *
 * Return: false if it is to be dropped silently: its ICRC is wrong, or it is no RoCE v2 packet.
 */
bool udp_in_packet(const struct fab_frames *frames, const uint8_t *bytes, size_t n,
		   struct fab_packet *ret, const uint8_t **ret_payload);

#endif
