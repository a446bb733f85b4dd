/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reception of RoCE v2: the sockets of a host's UDP port 4791, for IPv4 and IPv6. Data is returned
 * as the kernel delivers it: one packet, or several of equal sender and size at once (UDP_GRO).
 *
 * Several sockets share the port (SO_REUSEPORT), and a classic BPF program selects the one for a
 * packet, so that the kernel delivers it to the process with the queue pair.
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
 * @vrf: of the host's interface, see vrf.h
 *
 * Return: a descriptor, non-blocking and close-on-exec; -EADDRINUSE if the port is in use; -errno.
 */
int udp_in_open(uint32_t vrf);

/** udp_in_open_more() - bind the port again, after udp_in_open(). Return: as udp_in_open(). */
int udp_in_open_more(uint32_t vrf);

/**
 * udp_in_steer() - set the socket of each slot
 * @fd:   from udp_in_open()
 * @slot: the i-th udp_in_open_more() socket receives packets for queue pairs of slot[i]; no packets
 *        if 0. All other packets go to @fd
 * @n:    less than UDP_IN_SOCKETS_MAX
 *
 * Return: 0 or -errno.
 */
int udp_in_steer(int fd, const uint16_t *slot, unsigned int n);

/** udp_in_take_groups() - set whether the socket receives packets of groups joined by the host */
void udp_in_take_groups(int fd, bool on);

/** udp_in_drain() - discard received packets */
void udp_in_drain(int fd);

/**
 * udp_in_receive() - receive packets
 * @page:      of the device; the address, or a group's interface, determines the port
 * @ret:       its GIDs are IP addresses; port_num is 0 if no port matches
 * @ret_bytes: room for FAB_FRAMES_BYTES_MAX; gets ret->bytes of payloads
 *
 * Return: false if there are none.
 */
bool udp_in_receive(int fd, const struct fab_page *page, struct fab_frames *ret,
		    uint8_t *ret_bytes);

/**
 * udp_in_packet() - check and decode one payload
 * @ret:         the packet, including members from IP
 * @ret_payload: points into @bytes; ret->bytes bytes
 *
 * Return: false if it must be dropped silently: its ICRC is wrong, or it is not RoCE v2.
 */
bool udp_in_packet(const struct fab_frames *frames, const uint8_t *bytes, size_t n,
		   struct fab_packet *ret, const uint8_t **ret_payload);

#endif
