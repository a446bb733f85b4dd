/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A packet around a MAD that was never captured as one: what was seen inside a host is shown as if
 * it had been seen on the wire.
 */
#ifndef TOOLS_PURECM_WRAP_H
#define TOOLS_PURECM_WRAP_H

#include "tools/purecm/observation.h"

#define WRAP_BYTES_MAX 400

/**
 * wrap_mad() - make the packet
 * @observation:      GIDs that are IP addresses give RoCE v2 over Ethernet, LIDs an InfiniBand
 * packet
 * @ret_packet:    filled; link addresses and the invariant CRC are zero, nobody knows them
 * @ret_link_type: filled
 *
 * Return: bytes.
 */
size_t wrap_mad(const struct observation *observation, uint8_t ret_packet[WRAP_BYTES_MAX],
		int *ret_link_type);

#endif
