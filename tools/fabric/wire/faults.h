/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What goes wrong on the wire, on demand: a file of the fabric's folder that tools/fabric/fabric
 * writes, at any time, and that every sender has mapped.
 */
#ifndef FABRIC_FAULTS_H
#define FABRIC_FAULTS_H

#include <stdint.h>

#include "tools/fabric/wire/packet.h"

#define FAB_FAULTS_MAGIC 0x6661756cu
#define FAB_MILLION	 1000000u

/* Numbers of 32 bits, each read by itself; fabric.py packs them in this order. */
struct fab_fault {
	uint32_t loss, duplicate, reorder, corrupt; /* of a million packets */
	uint32_t delay_us;			    /* of each */
};

struct fab_faults {
	uint32_t magic;
	uint32_t seed;
	struct fab_fault mads, data;
};

/* What becomes of one packet. */
struct fab_fate {
	unsigned int copies; /* 0: it is lost */
	uint32_t delay_us;
	int32_t corrupt_bit; /* of the payload; -1: none */
};

/** fab_faults_open() - Return: the fabric's faults, or NULL if it has none. */
const struct fab_faults *fab_faults_open(const char *dir);

/** fab_faults_close() - NULL is allowed. */
void fab_faults_close(const struct fab_faults *faults);

/**
 * fab_faults_decide() - what becomes of a packet
 * @state: of the random numbers, of this sender; with the seed and the same packets, the same
 */
struct fab_fate fab_faults_decide(const struct fab_faults *faults, uint64_t *state,
				  const struct fab_packet *packet);

#endif
