/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Capture of the packets sent by processes of a fabric, as RoCE v2: `fabric run --pcap`. Each
 * process appends to a file in the fabric's folder before it sends, so that a response never
 * precedes its request. Packets that a fault drops are included, and those that are received from
 * hosts outside of the fabric.
 */
#ifndef FABRIC_UDP_CAPTURE_H
#define FABRIC_UDP_CAPTURE_H

#include <stdbool.h>

#include "tools/fabric/wire/folder.h"
#include "tools/fabric/wire/packet.h"

/* Zeros: no capture. */
struct udp_capture {
	bool is_open;
	int fd;
};

/** udp_capture_open() - open the capture, if the fabric in this folder has one */
void udp_capture_open(struct udp_capture *capture, const char *dir);

/** udp_capture_close() - may be called repeatedly, and without udp_capture_open() */
void udp_capture_close(struct udp_capture *capture);

/**
 * udp_capture_write() - append a packet, unless RoCE v2 has no form for it
 * @packet:  with GIDs; its payload fits into a path MTU
 * @payload: packet->bytes bytes
 */
void udp_capture_write(const struct udp_capture *capture, const struct fab_packet *packet,
		       const void *payload);

/**
 * udp_put_ip() - write the IP header of a RoCE v2 packet, from its GIDs
 * @n: bytes of UDP payload
 *
 * Return: the end of the header.
 */
uint8_t *udp_put_ip(const struct fab_packet *packet, size_t n, uint8_t *at);

/** udp_capture_received() - append a packet if its sender is no host of the fabric in a folder */
void udp_capture_received(const struct udp_capture *capture, const struct fab_folder *folder,
			  const struct fab_packet *packet, const void *payload);

#endif
