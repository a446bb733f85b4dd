/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Makes a packet around a MAD that was not captured as one, so that messages seen inside a host can
 * be shown as if seen on the wire.
 */
#ifndef TOOLS_PURECM_WRAP_H
#define TOOLS_PURECM_WRAP_H

#include "tools/purecm/observation.h"

#define WRAP_BYTES_MAX 400

/**
 * wrap_mad() - make a packet
 * @observation:      GIDs that are IP addresses make RoCE v2 over Ethernet, LIDs an InfiniBand
 *                    packet
 * @ret_packet:    the packet; link addresses and the invariant CRC are unknown, and zero
 * @ret_link_type: its link type
 *
 * Return: size of the packet in bytes.
 */
size_t wrap_mad(const struct observation *observation, uint8_t ret_packet[WRAP_BYTES_MAX],
		int *ret_link_type);

#endif
