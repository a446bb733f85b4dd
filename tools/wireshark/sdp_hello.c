/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The rows of SDP's Hello message: the base header, then the Hello header.
 */
#include "tools/wireshark/sdp_hello.h"

/* clang-format off */
static const struct wire_field sdp_hello_fields[] = {
	WIRE(sdp_hello, message_id, 0, 0, 8),
	WIRE_ID(sdp_hello, flags, 1, 0, 8),
	WIRE(sdp_hello, buffers, 2, 0, 16),
	WIRE(sdp_hello, length, 4, 0, 32),
	WIRE_ID(sdp_hello, sequence, 8, 0, 32),
	WIRE_ID(sdp_hello, sequence_ack, 12, 0, 32),
	WIRE(sdp_hello, major_version, 16, 0, 4),
	WIRE(sdp_hello, minor_version, 16, 4, 4),
	WIRE(sdp_hello, ip_version, 17, 0, 4),
	WIRE_ID(sdp_hello, capabilities, 17, 4, 4),
	WIRE(sdp_hello, max_adverts, 19, 0, 8),
	WIRE(sdp_hello, desired_remote_bytes, 20, 0, 32),
	WIRE(sdp_hello, local_bytes, 24, 0, 32),
	WIRE(sdp_hello, local_port, 28, 0, 16),
	WIRE_ADDR(sdp_hello, src_addr, 32),
	WIRE_ADDR(sdp_hello, dst_addr, 48),
	WIRE(sdp_hello, extended_max_adverts, 66, 0, 16),
};
/* clang-format on */

const struct wire_layout sdp_hello_layout =
	WIRE_LAYOUT("SDP", sdp_hello, sdp_hello_fields, SDP_HELLO_BYTES);
