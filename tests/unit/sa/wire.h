/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A subnet administrator for the unit tests of sa/: records requests, and responds as a test
 * defines.
 */
#ifndef TESTS_UNIT_SA_WIRE_H
#define TESTS_UNIT_SA_WIRE_H

#include "mad/sa/agent.h"

#define SENT_MAX 1024

/* The sent MADs, in order. */
struct sent {
	struct sa_msg msg;
	uint8_t mad[MAD_BYTES];
	unsigned int wait_ms;
};

extern struct sent sent[SENT_MAX];
extern unsigned int n_sent;

/** wire_clear() - drop the record */
void wire_clear(void);

/** wire_send() - for sa_flights_init() and sa_agent_init() */
void wire_send(void *arg, const uint8_t mad[MAD_BYTES], unsigned int wait_ms);

/**
 * wire_answer() - respond to the n-th request with the same record and a LID
 * @lid: DLID of a path, MLID of a group
 */
void wire_answer(unsigned int n, uint16_t status, uint16_t lid, uint8_t mad[MAD_BYTES]);

/** at_ms() - a time */
struct cm_time at_ms(uint64_t ms);

#endif
