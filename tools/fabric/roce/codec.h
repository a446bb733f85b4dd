/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The room of RoCE v2: packets of the transport (wire/packet.h) as bytes. It is pure: no sockets,
 * no clock, no memory but the caller's. It may call base/ and the field engine of mad/.
 *
 *   codec.h     a packet to UDP payload and back (below); headers.h: the headers as structs
 *   icrc.h      the invariant CRC, and the IPv4 identification that a receiver does not see
 *
 * A UDP payload is BTH, extended headers, payload, pad, ICRC. All that codec.c writes has room for
 * the ICRC at its end and needs icrc_seal() to be a packet.
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
 * roce_write() - a packet as UDP payload
 * @packet:  op, service, flags and what belongs to them; bytes is at most ROCE_PAYLOAD_BYTES_MAX
 * @payload: packet->bytes of it
 * @ret:     ROCE_BYTES_MAX of room; the last four bytes written are the ICRC's, and zero
 *
 * Return: how many bytes, a multiple of four; 0 if RoCE has no such packet.
 */
size_t roce_write(const struct fab_packet *packet, const void *payload,
		  uint8_t ret[ROCE_BYTES_MAX]);

/**
 * roce_read() - a UDP payload as a packet
 * @ret:         filled but for what IP says (GIDs, hop limit, traffic class); a request with an
 *               opcode that nobody knows is FAB_OP_UNKNOWN
 * @ret_payload: in @bytes; ret->bytes of it
 *
 * The ICRC is icrc_holds()'s business.
 *
 * Return: 0, or -EBADMSG for what is not a RoCE v2 packet, and is dropped silently: lengths that do
 * not fit, another transport version, another service (IBTA vol. 1, 9.6.1).
 */
int roce_read(const uint8_t *bytes, size_t n, struct fab_packet *ret, const uint8_t **ret_payload);

/** roce_dest_qpn() - the queue pair that a UDP payload is for; n is at least ROCE_BYTES_MIN. */
uint32_t roce_dest_qpn(const uint8_t *bytes);

#endif
