/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * RoCE v2 encoding: packets of the transport (wire/packet.h) as bytes. Pure: no sockets, no clock,
 * and only the caller's memory. It may call base/ and the field engine of mad/.
 *
 *   codec.h     between packets and UDP payload (below); headers.h: the headers as structs
 *   icrc.h      the invariant CRC, and the IPv4 identification that a receiver does not see
 *
 * A UDP payload is BTH, extended headers, payload, pad, ICRC. codec.c leaves room for the ICRC at
 * the end, which icrc_seal() sets.
 */
#ifndef FABRIC_ROCE_CODEC_H
#define FABRIC_ROCE_CODEC_H

#include <stddef.h>
#include <stdint.h>

#include "tools/fabric/roce/headers.h"
#include "tools/fabric/wire/packet.h"

#define ROCE_UDP_PORT	       4791
#define ROCE_PAYLOAD_BYTES_MAX 4096
#define ROCE_BYTES_MIN	       (BTH_BYTES + ICRC_BYTES)
#define ROCE_BYTES_MAX	       (HEADERS_BYTES_MAX + ROCE_PAYLOAD_BYTES_MAX + ICRC_BYTES)

/**
 * roce_write() - encode a packet as UDP payload
 * @packet:  op, service, flags and the members they use; bytes is at most ROCE_PAYLOAD_BYTES_MAX
 * @payload: packet->bytes bytes
 * @ret:     room for ROCE_BYTES_MAX; the last four bytes written are for the ICRC, and zero
 *
 * Return: number of bytes, a multiple of four; 0 if RoCE has no such packet.
 */
size_t roce_write(const struct fab_packet *packet, const void *payload,
		  uint8_t ret[ROCE_BYTES_MAX]);

/**
 * roce_read() - decode a UDP payload
 * @ret:         the packet, without members from IP (GIDs, hop limit, traffic class); a request
 *               with an unknown opcode is FAB_OP_UNKNOWN
 * @ret_payload: points into @bytes; ret->bytes bytes
 *
 * Does not check the ICRC: see icrc_holds().
 *
 * Return: 0, or -EBADMSG if it is not a RoCE v2 packet, and is dropped silently: invalid length,
 * another transport version, another service (IBTA vol. 1, 9.6.1).
 */
int roce_read(const uint8_t *bytes, size_t n, struct fab_packet *ret, const uint8_t **ret_payload);

/** roce_dest_qpn() - the destination queue pair of a UDP payload; @n is at least ROCE_BYTES_MIN */
uint32_t roce_dest_qpn(const uint8_t *bytes);

#endif
