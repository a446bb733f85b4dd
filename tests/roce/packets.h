/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Packets of every kind that RoCE has, with random fields.
 */
#ifndef TESTS_ROCE_PACKETS_H
#define TESTS_ROCE_PACKETS_H

#include <stdbool.h>

#include "tools/fabric/roce/codec.h"

struct kind {
	const char *name; /* as tshark has it: "RC SEND First" */
	uint8_t opcode;
	uint8_t service, op, flags;
	bool has_payload;
};

extern const struct kind kinds[];
extern const unsigned int n_kinds;

/** random_packet() - make a packet of a random kind, with at most 4096 bytes of payload. */
struct fab_packet random_packet(const struct kind *kind, uint8_t payload[ROCE_PAYLOAD_BYTES_MAX]);

#endif
