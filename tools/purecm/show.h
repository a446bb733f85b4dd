/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How a message is shown: a line, a line with the whole decode below it, a line of JSON, or an
 * arrow of a sequence chart. The trace calls one of them for each message that its filter lets
 * through.
 */
#ifndef TOOLS_PURECM_SHOW_H
#define TOOLS_PURECM_SHOW_H

#include "tools/purecm/flow.h"

/* Where the output is, between one message and the next. */
struct show {
	FILE *out;
	unsigned int width; /* columns, 0 for any number */
	uint64_t start_ns;  /* of the first message: times are counted from it */
	uint64_t last_ns;   /* of the last one, for the gaps of a chart */
	int who_columns;
	bool has_begun;
	bool has_title; /* of a chart */
};

/* A message and what it did. */
struct shown {
	const struct observation *observation;
	const struct cm_msg *msg;
	const struct flow_step *step;
};

typedef void show_function(struct show *show, const struct shown *shown);

show_function show_line;
show_function show_verbose;
show_function show_json;
show_function show_chart;

/** show_begin() - count times from the first message; to be called for each, before it is shown. */
void show_begin(struct show *show, const struct observation *observation);

/** show_other() - a MAD that is no CM message: of the SA, or of a version that we do not read. */
void show_other(struct show *show, const struct observation *observation, bool verbose);

/** show_other_json() - the same as a line of JSON. */
void show_other_json(struct show *show, const struct observation *observation);

/** show_brief() - the fields that matter, "name=value" with notes. Return: text to be freed. */
char *show_brief(const struct cm_msg *msg);

#endif
