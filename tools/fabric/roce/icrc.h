/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The invariant CRC of a RoCE v2 packet, IBTA vol. 1, A17.3.3. It covers the IP, UDP and transport
 * headers, with fields that routers may change replaced by ones, and the payload with its pad.
 *
 * It includes the IPv4 identification, which a UDP socket can neither set nor read. Linux sends 0
 * from an unconnected socket with "don't fragment", and 0, 1, 2, ... for the segments of one
 * UDP_SEGMENT send, so a sender knows it. A receiver solves for it: a packet is valid if its ICRC
 * is right for any identification, a check of 16 bits instead of 32, in addition to the UDP
 * checksum, which the kernel verifies. With IPv6 the check is complete.
 */
#ifndef FABRIC_ROCE_ICRC_H
#define FABRIC_ROCE_ICRC_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Inputs of the ICRC besides the UDP payload. */
struct icrc_flow {
	const union ibv_gid *sgid, *dgid; /* IPv4 as ::ffff:a.b.c.d */
	uint16_t source_port;
	uint16_t identification; /* of a sent IPv4 packet; the likely one of a received packet */
};

/**
 * icrc_flush_as_rxe() - set whether the ICRC of flushes is rxe's, sent and received
 *
 * rxe (Linux 6.12) adds the transport headers of a flush a second time, as if they were its
 * payload, which it does not have.
 */
void icrc_flush_as_rxe(bool on);

/** icrc_seal() - write the ICRC into the last four bytes of a UDP payload. */
void icrc_seal(const struct icrc_flow *flow, uint8_t *bytes, size_t n);

/**
 * icrc_holds() - check the ICRC of a UDP payload
 *
 * The result does not depend on flow->identification; the check is faster if that is right.
 */
bool icrc_holds(const struct icrc_flow *flow, const uint8_t *bytes, size_t n);

#endif
