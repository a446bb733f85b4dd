/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What is counted: messages of a port by kind, and those that came to nothing by the reason. Only
 * for people who look; nothing is decided by it.
 */
#ifndef CM_TALLY_H
#define CM_TALLY_H

#include <stdint.h>

#include "mad/cm_msg.h"

/* Messages that came to nothing, and why. */
#define CM_COUNTERS(X)                                                       \
	X(MALFORMED)   /* not a CM message */                                \
	X(UNKNOWN)     /* ids that name no connection */                     \
	X(ALIEN)       /* from another address than the connection's peer */ \
	X(UNEXPECTED)  /* no meaning in this state */                        \
	X(DUPLICATE)   /* seen before */                                     \
	X(NO_MEMORY)   /* a REQ or SIDR_REQ without a connection to spare */ \
	X(RETRIED)     /* our own repetitions */                             \
	X(UNSUPPORTED) /* LAP, APR */

enum cm_counter {
#define X(name) CM_COUNT_##name,
	CM_COUNTERS(X)
#undef X
	CM_N_COUNTERS,
};

#define CM_TALLY_NONE  (CM_ATTR_APR - CM_ATTR_REQ + 1) /* in place of a kind: it is none */
#define CM_TALLY_KINDS (CM_TALLY_NONE + 1)

/* By kind of message, from CM_ATTR_REQ. */
struct cm_tally {
	uint64_t sent[CM_TALLY_KINDS]; /* without repetitions */
	uint64_t received[CM_TALLY_KINDS];
	uint64_t count[CM_N_COUNTERS][CM_TALLY_KINDS];
};

/** cm_tally_kind() - where an attribute is counted; CM_TALLY_NONE if it is no message's. */
static inline unsigned int cm_tally_kind(uint16_t attr_id)
{
	return attr_id >= CM_ATTR_REQ && attr_id <= CM_ATTR_APR ? attr_id - CM_ATTR_REQ
								: CM_TALLY_NONE;
}

#endif
