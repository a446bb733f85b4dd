/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The Hello message with which the Sockets Direct Protocol (IBTA vol. 1, annex A4) fills the
 * private data of its REQs. purecm does not implement SDP; its dissector reads it.
 */
#ifndef TOOLS_WIRESHARK_SDP_HELLO_H
#define TOOLS_WIRESHARK_SDP_HELLO_H

#include "mad/wire.h"

#define SDP_HELLO_BYTES 68

struct sdp_hello {
	uint8_t message_id; /* 0: Hello */
	uint8_t flags;
	uint16_t buffers;
	uint32_t length; /* of the message */
	uint32_t sequence;
	uint32_t sequence_ack;
	uint8_t major_version;
	uint8_t minor_version;
	uint8_t ip_version; /* 4 or 6 */
	uint8_t capabilities;
	uint8_t max_adverts;
	uint32_t desired_remote_bytes; /* receive buffers that it wants of the peer */
	uint32_t local_bytes;	       /* its own receive buffers */
	uint16_t local_port;
	uint8_t src_addr[16]; /* IPv4 in the last four bytes */
	uint8_t dst_addr[16];
	uint16_t extended_max_adverts;
};

extern const struct wire_layout sdp_hello_layout;

#endif
