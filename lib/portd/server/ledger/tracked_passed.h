/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which messages of a connection have passed, and what that leaves to say to its peer if the client
 * ends: a bit for each kind of message, whose order does not matter, and one table that turns them
 * into the state from which the connection is ended.
 */
#ifndef LIB_PORTD_SERVER_LEDGER_TRACKED_PASSED_H
#define LIB_PORTD_SERVER_LEDGER_TRACKED_PASSED_H

#include <stdbool.h>
#include <stdint.h>

#include "cm/conn.h"

/* The highest one decides. */
enum passed {
	PASSED_REP = 1, /* of the passive side; a SIDR_REP, too */
	PASSED_RTU = 2, /* of the active side */
	PASSED_OUR_DREQ = 4,
	PASSED_ITS_REJ = 8,
	PASSED_ITS_DREQ = 16,
	PASSED_OUR_REJ = 32,
	PASSED_DREP = 64,    /* of either side */
	PASSED_LOOKUP = 128, /* a SIDR_REQ of the peer; then all but SIDR_REP is void */
};

/**
 * passed_after() - add a message
 * @passed:    bitmap of what has passed before
 * @state:     passed_state() of it
 * @is_active: the client has sent the REQ
 * @event:     CALL_* of a message that the client sends, RX_* of one that it gets
 *
 * A message is void if its side cannot send it, if it confirms what has not passed, or if the
 * connection is over.
 *
 * Return: the new bitmap; @passed if the message is void, or no end of a connection needs it.
 */
uint8_t passed_after(uint8_t passed, enum cm_state state, bool is_active, enum cm_event event);

/** passed_state() - the state of a core that a connection is ended from, cm_core_adopt() */
enum cm_state passed_state(uint8_t passed, bool is_active);

#endif
