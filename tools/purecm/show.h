/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Output formats of a message: a line, a line and the full decode, a line of JSON, or an arrow of a
 * sequence chart.
 */
#ifndef TOOLS_PURECM_SHOW_H
#define TOOLS_PURECM_SHOW_H

#include "mad/sa_msg.h"
#include "tools/purecm/flow.h"

/* State of the output between messages. */
struct show {
	FILE *out;
	unsigned int width; /* columns; 0 for no limit */
	uint64_t start_ns;  /* time of the first message, the origin */
	uint64_t last_ns;   /* time of the latest message, for gaps in a chart */
	int who_columns;
	bool is_absolute; /* times of day, not since the first message */
	bool has_begun;
	bool has_title; /* of a chart */
};

/* A message and its effect. */
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

/** show_begin() - set the time origin; to be called for each message before it is shown */
void show_begin(struct show *show, const struct observation *observation);

/** show_other() - show a MAD that is not a CM message: of the SA, or of an unsupported version */
void show_other(struct show *show, const struct observation *observation, bool verbose);

/** show_other_json() - likewise as a line of JSON */
void show_other_json(struct show *show, const struct observation *observation);

/**
 * show_brief() - format the important fields, "name=value" with notes. Return: text to be freed.
 */
char *show_brief(const struct cm_msg *msg);

/**
 * sa_decode() - decode a MAD of the SA class
 * @ret: its header, and the record if a layout is returned
 *
 * Return: the record's layout, or NULL for an unsupported record.
 */
const struct wire_layout *sa_decode(const uint8_t mad[MAD_BYTES], struct sa_msg *ret);

/** sa_name() - format "GetResp PathRecord". Return: @buf. */
const char *sa_name(const struct mad_hdr *hdr, char *buf, size_t bytes);

#endif
