/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The invariant CRC of a RoCE v2 packet, IBTA vol. 1, A17.3.3: over the IP, UDP and transport
 * headers, in which what routers may change counts as all ones, and over the payload and its pad.
 *
 * The IPv4 identification is covered, and a UDP socket neither sets nor shows it. Linux sends 0
 * from a socket that is not connected, with "don't fragment", and 0, 1, 2, ... for the segments of
 * one UDP_SEGMENT send; so a sender knows it. A receiver solves for it: a packet passes if some
 * identification makes its ICRC right, a check of 16 bits instead of 32 (the UDP checksum, which
 * the kernel verifies, adds to it). With IPv6 the check is whole.
 */
#ifndef FABRIC_ROCE_ICRC_H
#define FABRIC_ROCE_ICRC_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What the ICRC covers besides the UDP payload. */
struct icrc_flow {
	const union ibv_gid *sgid, *dgid; /* IPv4 as ::ffff:a.b.c.d */
	uint16_t source_port;
	uint16_t identification; /* of an IPv4 packet that is sent */
};

/** icrc_is_ipv4() - does a GID stand for an IPv4 address? */
bool icrc_is_ipv4(const union ibv_gid *gid);

/** icrc_seal() - write the ICRC into the last four bytes of a UDP payload. */
void icrc_seal(const struct icrc_flow *flow, uint8_t *bytes, size_t n);

/** icrc_holds() - does a UDP payload have the right ICRC? flow->identification does not matter. */
bool icrc_holds(const struct icrc_flow *flow, const uint8_t *bytes, size_t n);

#endif
