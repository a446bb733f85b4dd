/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Any bytes as a datagram for a datagram socket, on its queue pair and on UDP: an accepted header
 * lies within the datagram, and survives encoding and decoding.
 */
#include <stdlib.h>
#include <string.h>

#include "lib/rsocket/dgram_wire.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static void check_ud(const uint8_t *data, size_t bytes)
{
	uint8_t wire[DGRAM_UD_BYTES_MAX], again[DGRAM_UD_BYTES_MAX];
	union addr addr;
	ssize_t n = dgram_ud_decode(data, bytes, &addr);

	if (n < 0)
		return;
	if ((size_t)n > bytes || dgram_ud_encode(&addr, wire) != (size_t)n ||
	    dgram_ud_decode(wire, (size_t)n, &addr) != n ||
	    dgram_ud_encode(&addr, again) != (size_t)n || memcmp(wire, again, (size_t)n) != 0)
		abort();
}

static void check_udp(const uint8_t *data, size_t bytes)
{
	uint8_t wire[DGRAM_UDP_BYTES_MAX], again[DGRAM_UDP_BYTES_MAX];
	struct dgram_udp header;
	ssize_t n = dgram_udp_decode(data, bytes, &header);

	if (n < 0)
		return;
	if ((size_t)n > bytes || dgram_udp_encode(&header, wire) != (size_t)n ||
	    dgram_udp_decode(wire, (size_t)n, &header) != n ||
	    dgram_udp_encode(&header, again) != (size_t)n || memcmp(wire, again, (size_t)n) != 0)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	check_ud(data, bytes);
	check_udp(data, bytes);
	return 0;
}
