/* SPDX-License-Identifier: BSD-2-Clause */
/* Execution of a script, line by line. */
#ifndef TOOLS_PURECM_DRILL_RUN_H
#define TOOLS_PURECM_DRILL_RUN_H

#include "tools/purecm/drill_link.h"
#include "tools/purecm/drill_script.h"

#define DRILL_N_ATTRS 0x20

struct drill_run {
	struct drill_link *link;
	const struct drill_script *script;
	char peer[DRILL_NAME_BYTES]; /* selects the lines that apply */
	double timeout_s;	     /* default timeout */
	FILE *trace;		     /* of all messages; NULL: none */
	struct drill_vars vars;
	uint64_t begun_ns, step_ns; /* start of the script, end of the last line */
	uint64_t tid;
	unsigned int n_ours; /* comm ids of this script; messages for others are ignored */
	uint32_t ours[64];
	bool has_sent[DRILL_N_ATTRS], has_heard[DRILL_N_ATTRS];
	uint8_t sent[DRILL_N_ATTRS][MAD_BYTES];	 /* latest by attribute */
	uint8_t heard[DRILL_N_ATTRS][MAD_BYTES]; /* latest by attribute */

	/* About the line that failed. */
	const struct drill_line *line;
	char why[1024];
};

/**
 * drill_run_begin() - set the initial variables of a script
 * @run:     zeroed except for link, script, peer, timeout_s, trace
 * @checkup: the path to the peer
 * @port:    of the TCP and UDP port spaces
 * @ca_guid: ours
 */
void drill_run_begin(struct drill_run *run, const struct checkup *checkup, uint16_t port,
		     uint64_t ca_guid);

/**
 * drill_run_all() - execute all lines
 *
 * Return: 0; -EPROTO if the script's expectation failed, as @run explains; -errno if it cannot be
 * executed.
 */
int drill_run_all(struct drill_run *run);

/** drill_run_end() - let the peer end remaining connections, and answer its DREQs */
void drill_run_end(struct drill_run *run);

#endif
