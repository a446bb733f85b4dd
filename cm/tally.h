/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Counters: messages of a port by kind, and dropped messages by reason. They are for diagnosis
 * only; no decision depends on them.
 */
#ifndef CM_TALLY_H
#define CM_TALLY_H

#include <stdint.h>

#include "mad/cm_msg.h"

/* Reasons for dropping a message, and retransmissions. */
#define CM_COUNTERS(X)                                                         \
	X(MALFORMED)   /* not a CM message */                                  \
	X(UNKNOWN)     /* ids of no connection */                              \
	X(ALIEN)       /* from an address that is not the connection's peer */ \
	X(UNEXPECTED)  /* not legal in this state */                           \
	X(DUPLICATE)   /* received before */                                   \
	X(NO_MEMORY)   /* REQ or SIDR_REQ, but no spare connection */          \
	X(RETRIED)     /* our own retransmissions */                           \
	X(UNSUPPORTED) /* LAP, APR */

enum cm_counter {
#define X(name) CM_COUNT_##name,
	CM_COUNTERS(X)
#undef X
	CM_N_COUNTERS,
};

#define CM_TALLY_NONE  (CM_ATTR_APR - CM_ATTR_REQ + 1) /* other attribute ids */
#define CM_TALLY_KINDS (CM_TALLY_NONE + 1)

/* The index is the kind of message, from CM_ATTR_REQ. */
struct cm_tally {
	uint64_t sent[CM_TALLY_KINDS]; /* without retransmissions */
	uint64_t received[CM_TALLY_KINDS];
	uint64_t count[CM_N_COUNTERS][CM_TALLY_KINDS];
};

/** cm_tally_kind() - index of an attribute, or CM_TALLY_NONE if it is not a CM message. */
static inline unsigned int cm_tally_kind(uint16_t attr_id)
{
	return attr_id >= CM_ATTR_REQ && attr_id <= CM_ATTR_APR ? attr_id - CM_ATTR_REQ
								: CM_TALLY_NONE;
}

#endif
