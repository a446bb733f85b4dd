/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where the time of a connection went: in programs, or in waiting for messages that were lost.
 * Pure.
 *
 * It is not known where the messages were seen. A capture at the sender has messages that did not
 * arrive; one at the receiver lacks them. So a cause is named only if it follows wherever that was;
 * what a slow program and a loss have in common is DELAY_EITHER. It is assumed that a connection
 * manager answers the repetition of a message that its program has not yet answered with MRA, as
 * purecm's and Linux's do, and that packets take much less than 0.9 s.
 */
#ifndef TOOLS_PURECM_DELAY_H
#define TOOLS_PURECM_DELAY_H

#include <stdio.h>

#include "tools/purecm/flow.h"

enum delay_part {
	DELAY_REQUEST, /* REQ to REP */
	DELAY_CONFIRM, /* REP to RTU */
	DELAY_ARRIVAL, /* of the RTU; nobody sees how long it takes */
	DELAY_CLOSE,   /* DREQ to DREP */
	DELAY_N_PARTS,
};

enum delay_cause {
	DELAY_NONE,    /* not seen, or too short to matter */
	DELAY_PROGRAM, /* at the end that answers */
	DELAY_LOSS,
	DELAY_EITHER,
};

/** delay_cause() - what took the time of a part */
enum delay_cause delay_cause(const struct flow *flow, enum delay_part part);

/** delay_print() - describe the times of a connection that did not fail, in sentences */
void delay_print(const struct flow *flow, FILE *out);

#endif
