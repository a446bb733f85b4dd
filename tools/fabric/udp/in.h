/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Receiving RoCE v2: the sockets that have UDP port 4791 of a host, for IPv4 and IPv6. What comes
 * is given as the kernel gives it: one packet, or several of one sender and size at once (UDP_GRO).
 *
 * Several sockets have the port (SO_REUSEPORT), and a classic BPF program chooses the one that a
 * packet comes to: the process with the queue pair receives it from the kernel itself.
 */
#ifndef FABRIC_UDP_IN_H
#define FABRIC_UDP_IN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tools/fabric/wire/frames.h"
#include "tools/fabric/wire/page.h"
#include "tools/fabric/wire/packet.h"

#define UDP_IN_SOCKETS_MAX FAB_SLOTS

/**
 * udp_in_open() - bind port 4791, for the first time on this host
 *
 * Return: a descriptor, non-blocking and closed on exec; -EADDRINUSE if somebody has the port;
 * -errno.
 */
int udp_in_open(void);

/** udp_in_open_more() - bind it once more, after udp_in_open(). Return: as that. */
int udp_in_open_more(void);

/**
 * udp_in_steer() - choose who gets what
 * @fd:   of udp_in_open()
 * @slot: packets for queue pairs of slot[i] come to the socket of the i-th udp_in_open_more(); 0:
 * to nobody; all others come to @fd
 * @n:    less than UDP_IN_SOCKETS_MAX
 *
 * Return: 0 or -errno.
 */
int udp_in_steer(int fd, const uint16_t *slot, unsigned int n);

/** udp_in_take_groups() - whether packets for groups that the host has joined come here, too. */
void udp_in_take_groups(int fd, bool on);

/** udp_in_drain() - forget what came. */
void udp_in_drain(int fd);

/**
 * udp_in_receive() - take what came
 * @page:      of the device, whose port it came to by the address; of a group by the interface
 * @ret:       the GIDs are addresses of IP; port_num is 0 if it is for none of the device's
 * @ret_bytes: FAB_FRAMES_BYTES_MAX of room; ret->bytes of payloads
 *
 * Return: false if nothing is there.
 */
bool udp_in_receive(int fd, const struct fab_page *page, struct fab_frames *ret,
		    uint8_t *ret_bytes);

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
