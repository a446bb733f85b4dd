/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The oracles: rules that hold in every world, taken from the protocol and not from the code. They
 * see calls and reports of applications, and messages on the wire.
 *
 * - Calls and reports of an id are a legal sequence (order.c), without reports after destroy.
 * - A message has only such answers as the protocol knows, so none can lead to another for ever.
 * - REQ, REP, DREQ and SIDR_REQ are sent 16 times at most, a second apart at least, and only while
 *   they are unanswered; the wait for an answer ends.
 * - Where nothing happens any more, nobody waits for a peer; and who believes to be connected has
 *   a peer that believes it too, and whose queue pair it knows, or that was cut off before it
 *   could report that.
 * - A request is reported once, however often it comes; not too many are out at once.
 * - In the end nothing is left in any table.
 */
#ifndef TESTS_SIM_ORACLE_H
#define TESTS_SIM_ORACLE_H

#include "tests/sim/sim.h"

enum oracle_cause {
	ORACLE_CALL,
	ORACLE_MESSAGE,
	ORACLE_TIMER,
};

/** oracle_called() - check a call of an application and its result. */
void oracle_called(struct sim_id *id, enum cm_event verb, int err);

/** oracle_check_report() - check a report to an application; NULL for an id that does not exist. */
void oracle_check_report(struct sim *sim, struct sim_id *id, const struct cm_report *report);

/**
 * oracle_sent() - check a message or report of a core
 * @cause: what made it
 * @what:  the verb of a call, the attribute of a message
 */
void oracle_sent(struct sim_host *host, const uint8_t mad[MAD_BYTES], enum oracle_cause cause,
		 uint16_t what);

/** oracle_note_accepted() - note a message that a core has accepted. */
void oracle_note_accepted(struct sim_host *host, const uint8_t mad[MAD_BYTES]);

/** oracle_no_duplicate() - check that a reported request is not a known one. */
void oracle_no_duplicate(const struct sim_id *id);

/** oracle_in_turn() - check that not too many requests are unanswered after a send. */
void oracle_in_turn(struct sim_host *host);

/** oracle_quiet() - check a world with a working network after all activity. */
void oracle_quiet(struct sim *sim);

/** oracle_empty() - check a world after all ids were destroyed. */
void oracle_empty(struct sim *sim);

#endif
