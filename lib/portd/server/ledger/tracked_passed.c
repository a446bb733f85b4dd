/* SPDX-License-Identifier: BSD-2-Clause */
/* What has passed of a connection: see tracked_passed.h. */
#include "lib/portd/server/ledger/tracked_passed.h"

#define NEVER PASSED_LOOKUP /* a connection does not have it */

/* clang-format off */
static const struct message {
	uint8_t bit;
	uint8_t after[2]; /* some of these, or 0, must have passed before; by is_active */
} messages[CM_N_EVENTS] = {
	[CM_CALL_REP]      = { PASSED_REP,      { 0, NEVER } },
	[CM_CALL_RTU]      = { PASSED_RTU,      { NEVER, PASSED_REP } },
	[CM_CALL_DREQ]     = { PASSED_OUR_DREQ, { 0, 0 } },
	[CM_CALL_DREP]     = { PASSED_DREP,     { 0, 0 } },
	[CM_CALL_REJ]      = { PASSED_OUR_REJ,  { 0, 0 } },
	[CM_CALL_SIDR_REP] = { PASSED_REP,      { PASSED_LOOKUP, NEVER } },
	[CM_CALL_ESTABLISH] = { PASSED_RTU,     { PASSED_REP, NEVER } },
	[CM_RX_REP]        = { PASSED_REP,      { NEVER, 0 } },
	[CM_RX_RTU]        = { PASSED_RTU,      { PASSED_REP, NEVER } },
	[CM_RX_DREQ]       = { PASSED_ITS_DREQ, { PASSED_REP, PASSED_RTU } },
	[CM_RX_DREP]       = { PASSED_DREP,     { PASSED_OUR_DREQ | PASSED_ITS_DREQ,
						  PASSED_OUR_DREQ | PASSED_ITS_DREQ } },
	[CM_RX_REJ]        = { PASSED_ITS_REJ,  { 0, 0 } },
	[CM_RX_REJ_STALE]  = { PASSED_ITS_REJ,  { 0, 0 } },
};

/* By the number of the highest bit that has passed, from 1. */
static const struct rest {
	enum cm_state state[2]; /* by is_active; or, if one of these has passed: */
	uint8_t after[2];
	enum cm_state then;
} rests[] = {
	/* nothing  */ { { CM_REQ_RCVD,      CM_REQ_SENT },      { 0, 0 }, CM_IDLE },
	/* REP      */ { { CM_REP_SENT,      CM_REP_RCVD },      { 0, 0 }, CM_IDLE },
	/* RTU      */ { { CM_ESTABLISHED,   CM_ESTABLISHED },   { 0, 0 }, CM_IDLE },
	/* OUR_DREQ */ { { CM_DREQ_SENT,     CM_DREQ_SENT },     { 0, 0 }, CM_IDLE },
	/* ITS_REJ  */ { { CM_IDLE,          CM_IDLE },          { PASSED_RTU, PASSED_RTU }, CM_TIMEWAIT },
	/* ITS_DREQ */ { { CM_DREQ_RCVD,     CM_DREQ_RCVD },     { 0, 0 }, CM_IDLE },
	/* OUR_REJ  */ { { CM_IDLE,          CM_IDLE },          { PASSED_REP, PASSED_RTU }, CM_TIMEWAIT },
	/* DREP     */ { { CM_TIMEWAIT,      CM_TIMEWAIT },      { 0, 0 }, CM_IDLE },
	/* LOOKUP   */ { { CM_SIDR_REQ_RCVD, CM_SIDR_REQ_RCVD }, { PASSED_REP, PASSED_REP }, CM_SIDR_REP_SENT },
};
/* clang-format on */

enum cm_state passed_state(uint8_t passed, bool is_active)
{
	const struct rest *rest = &rests[passed ? 32 - __builtin_clz(passed) : 0];

	return passed & rest->after[is_active] ? rest->then : rest->state[is_active];
}

uint8_t passed_after(uint8_t passed, enum cm_state state, bool is_active, enum cm_event event)
{
	const struct message *message = &messages[event];
	const uint8_t after = message->after[is_active];

	if ((after && !(passed & after)) || state == CM_IDLE || state == CM_TIMEWAIT)
		return passed;
	/* The peer may send the same REQ again, as a new one: nothing of before counts. */
	return (event == CM_RX_REJ_STALE ? 0 : passed) | message->bit;
}
