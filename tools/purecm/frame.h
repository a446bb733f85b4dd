/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The MAD in a captured packet: from the link's header down to the 256 bytes. Pure; called by
 * capture.c for every packet, so nothing of it may trust what it reads.
 */
#ifndef TOOLS_PURECM_FRAME_H
#define TOOLS_PURECM_FRAME_H

#include "tools/purecm/observation.h"

#define ROCE_UDP_PORT 4791

/* Of the registry at tcpdump.org; those that libpcap's own numbers differ from are not among them,
 * except for raw IP. */
enum link_type {
	LINK_ETHERNET = 1,
	LINK_RAW_IP_DLT = 12,
	LINK_RAW_IP = 101,
	LINK_SLL = 113,
	LINK_ERF = 197,
	LINK_INFINIBAND = 247,
	LINK_SLL2 = 276,
};

/** frame_link_is_known() - can packets of a link type be read? */
bool frame_link_is_known(int link_type);

/**
 * frame_find_mad() - the MAD in a packet
 * @link_type: enum link_type
 * @frame:     the packet
 * @bytes:     as many as were captured
 * @ret:       src, dst, src_qpn, pkey and mad are filled if it is there
 *
 * Looks for what is sent to queue pair 1, of the classes CM and SA.
 *
 * Return: 1; 0 for any other packet; -EMSGSIZE if it is one, but was cut before its end.
 */
int frame_find_mad(int link_type, const uint8_t *frame, size_t bytes, struct observation *ret);

#endif
