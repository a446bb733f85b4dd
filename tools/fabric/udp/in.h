/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Receiving RoCE v2: the socket that has UDP port 4791 of a host, for IPv4 and IPv6. What comes is
 * given as the kernel gives it: one packet, or several of one sender and size at once (UDP_GRO).
 */
#ifndef FABRIC_UDP_IN_H
#define FABRIC_UDP_IN_H

#include <stdbool.h>
#include <stdint.h>

#include "tools/fabric/wire/frames.h"

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

#endif
