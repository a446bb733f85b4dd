/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Carrying out a script, line by line.
 */
#ifndef TOOLS_PURECM_DRILL_RUN_H
#define TOOLS_PURECM_DRILL_RUN_H

#include "tools/purecm/drill_link.h"
#include "tools/purecm/drill_script.h"

#define DRILL_N_ATTRS 0x20

struct drill_run {
	struct drill_link *link;
	const struct drill_script *script;
	char peer[DRILL_NAME_BYTES]; /* which lines count */
	double timeout_s;	     /* for what has no time of its own */
	FILE *trace;		     /* every message; NULL: none */
	struct drill_vars vars;
	uint64_t begun_ns, step_ns; /* the script, the last line's end */
	uint64_t tid;
	unsigned int n_ours; /* comm ids that were ours: what is for others is not for us */
	uint32_t ours[64];
	bool has_sent[DRILL_N_ATTRS], has_heard[DRILL_N_ATTRS];
	uint8_t sent[DRILL_N_ATTRS][MAD_BYTES];	 /* the last of each kind */
	uint8_t heard[DRILL_N_ATTRS][MAD_BYTES]; /* the same */

	/* Of the line that failed. */
	const struct drill_line *line;
	char why[1024];
};

/**
 * drill_run_begin() - the variables that a script begins with
 * @run:     zeroed but for link, script, peer, timeout_s, trace
 * @checkup: the way to the peer
 * @port:    of the TCP and the UDP port space
 * @ca_guid: ours
 */
void drill_run_begin(struct drill_run *run, const struct checkup *checkup, uint16_t port,
		     uint64_t ca_guid);

/**
 * drill_run_all() - carry out all lines
 *
 * Return: 0; -EPROTO if something else happened than the script says: @run says what; -errno if it
 * cannot be carried out.
 */
int drill_run_all(struct drill_run *run);

/** drill_run_end() - let the peer end what is left, and answer its farewells. */
void drill_run_end(struct drill_run *run);

#endif
