/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Finds the MAD in a captured packet: from the link header down to the 256 bytes. Pure. Its input
 * is not trusted.
 */
#ifndef TOOLS_PURECM_FRAME_H
#define TOOLS_PURECM_FRAME_H

#include "tools/purecm/observation.h"

#define ROCE_UDP_PORT 4791

/* As registered at tcpdump.org. libpcap's own numbers are the same for these, except for raw IP. */
enum link_type {
	LINK_ETHERNET = 1,
	LINK_RAW_IP_DLT = 12,
	LINK_RAW_IP = 101,
	LINK_SLL = 113,
	LINK_ERF = 197,
	LINK_INFINIBAND = 247,
	LINK_SLL2 = 276,
};

/** frame_link_is_known() - return whether packets of a link type are supported */
bool frame_link_is_known(int link_type);

/**
 * frame_find_mad() - find the MAD in a packet
 * @link_type: enum link_type
 * @frame:     the packet
 * @bytes:     number of captured bytes
 * @ret:       src, dst, src_qpn, pkey and mad are set if there is one
 *
 * Considers packets to queue pair 1, of the classes CM and SA.
 *
 * Return: 1; 0 for any other packet; -EMSGSIZE for a truncated one.
 */
int frame_find_mad(int link_type, const uint8_t *frame, size_t bytes, struct observation *ret);

#endif
