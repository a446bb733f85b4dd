/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the processes of a fabric send, as a capture of RoCE v2 packets: `fabric run --pcap`. Each
 * process appends to a file of the fabric's folder before it sends, so an answer never comes before
 * its question. The capture also has packets that a fault drops afterwards.
 */
#ifndef FABRIC_UDP_CAPTURE_H
#define FABRIC_UDP_CAPTURE_H

#include <stdbool.h>

#include "tools/fabric/wire/packet.h"

/* Zeros: nothing is captured. */
struct udp_capture {
	bool is_open;
	int fd;
};

/** udp_capture_open() - if the fabric in this folder is captured. */
void udp_capture_open(struct udp_capture *capture, const char *dir);

/** udp_capture_close() - allowed twice, and without udp_capture_open(). */
void udp_capture_close(struct udp_capture *capture);

/**
 * udp_capture_write() - append a packet; what RoCE v2 has no form for is left out
 * @packet:  payload and GIDs included, of a payload that fits into a path MTU
 * @payload: packet->bytes of it
 */
void udp_capture_write(const struct udp_capture *capture, const struct fab_packet *packet,
		       const void *payload);

#endif
