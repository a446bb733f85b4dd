/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A connection as a sequence chart: its two ends as columns, time downwards. Part of show.h.
 *
 *     seconds  10.77.0.1:42212              10.77.0.2:7000
 *    0.000000  REQ_SENT      ----- REQ ---->  REQ_RCVD
 *              reason=8 (...)
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tools/purecm/page.h"
#include "tools/purecm/show.h"

#define STATE_COLUMNS 13
#define ARROW_COLUMNS 20
#define FIELD_INDENT  13
#define GAP_NS	      1000000000ull
#define NS_PER_S      1e9

static void print_title(struct show *show, const struct flow *flow)
{
	char active[FLOW_WHO_BYTES], passive[FLOW_WHO_BYTES], service[FLOW_WHO_BYTES];

	fprintf(show->out, "#%u %s to %s, %s\n\n", flow->number,
		flow_who(flow, FLOW_ACTIVE, active), flow_who(flow, FLOW_PASSIVE, passive),
		flow_service(flow, service));
	fprintf(show->out, "%11s  %-*s %*s  %s\n", "seconds", STATE_COLUMNS, "active",
		ARROW_COLUMNS, "", "passive");
}

/* Prints "----- REQ ---->", with the name centred. */
static void print_arrow(const char *name, bool right, FILE *out)
{
	int dashes = ARROW_COLUMNS - 3 - (int)strlen(name);
	int before = dashes / 2;

	if (!right)
		putc('<', out);
	for (; dashes > 0; dashes--) {
		putc('-', out);
		if (--before == 0)
			fprintf(out, " %s ", name);
	}
	if (right)
		putc('>', out);
}

/* Marks a long pause. */
static void print_gap(struct show *show, uint64_t now_ns)
{
	if (now_ns > show->last_ns + GAP_NS)
		fprintf(show->out, "%11s  %-*s %s\n", "...", STATE_COLUMNS, "", "nothing for long");
}

static void print_notes(struct show *show, const struct shown *shown)
{
	const bool is_new = shown->step->nth <= 1 && !shown->step->is_copy;
	char *brief = is_new ? show_brief(shown->msg) : NULL, *text = NULL;
	size_t bytes;
	FILE *words = open_memstream(&text, &bytes);

	if (words) {
		if (shown->step->is_copy)
			fputs("the same packet, captured once more ", words);
		else if (shown->step->nth > 1)
			fprintf(words, "repeated: number %u ", shown->step->nth);
		if (shown->step->is_stray)
			fputs("ignored ", words);
		fputs(brief ? brief : "", words);
		fclose(words);
	}
	fprintf(show->out, "%*s", FIELD_INDENT, "");
	page_fill(text ? text : "", FIELD_INDENT, FIELD_INDENT, show->width ? show->width : 100,
		  show->out);
	free(text);
	free(brief);
}

void show_chart(struct show *show, const struct shown *shown)
{
	const struct flow_step *step = shown->step;

	if (!show->has_title)
		print_title(show, step->flow);
	show->has_title = true;
	print_gap(show, shown->observation->time_ns);
	show->last_ns = shown->observation->time_ns;
	fprintf(show->out, "%11.6f  %-*s ",
		(double)(int64_t)(shown->observation->time_ns - show->start_ns) / NS_PER_S,
		STATE_COLUMNS, step->flow->is_sidr ? "" : cm_state_str(step->state[FLOW_ACTIVE]));
	print_arrow(cm_msg_layout(shown->msg->hdr.attr_id)->name, step->from == FLOW_ACTIVE,
		    show->out);
	fprintf(show->out, "  %s\n",
		step->flow->is_sidr ? "" : cm_state_str(step->state[FLOW_PASSIVE]));
	print_notes(show, shown);
}
