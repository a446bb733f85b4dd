/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * purecm timeline: a web page with a picture of a capture, HTML with SVG, without scripts and
 * external resources. Connections are lanes with a line for each end; messages are arrows between
 * them.
 *
 * Time runs to the right, on one scale for all connections. Distances grow with the logarithm of
 * time, so that messages microseconds apart can be distinguished beside waits of minutes. Pauses of
 * a second or more are shaded and labelled with their length. Below, each connection is explained.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "tools/purecm/advice.h"
#include "tools/purecm/reading.h"
#include "tools/purecm/show.h"

#define DRAWN_MAX  5000 /* more do not make a readable picture */
#define GAP_S	   1.0
#define STEP_PX	   46 /* minimum distance of messages: a name fits */
#define DECADE_PX  12
#define MARGIN_PX  30
#define TOP_PX	   28
#define LANE_PX	   96
#define ACTIVE_PX  30 /* from the top of a lane */
#define PASSIVE_PX 70

enum fate {
	FATE_ANSWERED, /* or needs no answer */
	FATE_UNANSWERED,
	FATE_LOST, /* it, or its answer */
};

struct log_entry {
	uint64_t time_ns;
	struct flow_step step;
	enum cm_attr attr;
	bool is_chosen; /* by the filter */
	char *brief;	/* from show_brief() */
	uint32_t next;	/* message of the flow; 0: there is none */
	enum fate fate;
};

/* All messages of the flows that the filter selects; after reading, those that are drawn. */
struct log {
	struct flows *flows;
	const struct filter *filter;
	struct log_entry *entry;
	uint32_t count, room, n_chosen;
	uint64_t end_ns; /* of the last message, selected or not */
	bool is_cut;	 /* there were more messages to draw */
};

struct page {
	const struct log *log;
	FILE *out;
	double *x;		  /* position of each message */
	uint32_t *lane;		  /* by flow number - 1: from 1, 0 for none */
	const struct flow **flow; /* by lane */
	uint32_t n_lanes;
	double width;
};

/* --- reading -------------------------------------------------------------- */

static int make_room(struct log *log)
{
	uint32_t n = log->room ? 2 * log->room : DRAWN_MAX;
	struct log_entry *entry;

	if (log->count < log->room)
		return 0;
	entry = realloc(log->entry, n * sizeof(*entry));
	if (!entry)
		return -ENOMEM;
	log->entry = entry;
	log->room = n;
	return 0;
}

/* What is not drawn may answer what is. */
static int take_observation(void *arg, const struct observation *observation)
{
	struct log_entry *entry;
	struct log *log = arg;
	struct flow_step step;
	struct cm_msg msg;
	int err;

	if (!observation_decode(observation, &msg))
		return 0;
	err = flows_take(log->flows, observation, &msg, &step);
	if (err)
		return err;
	log->end_ns = observation->time_ns;
	if (step.is_copy || !filter_takes_flow(log->filter, step.flow))
		return 0;
	err = make_room(log);
	if (err)
		return err;
	entry = &log->entry[log->count++];
	*entry = (struct log_entry){ .time_ns = observation->time_ns,
				     .step = step,
				     .attr = (enum cm_attr)msg.hdr.attr_id,
				     .is_chosen = filter_takes_message(log->filter, &msg) };
	log->n_chosen += entry->is_chosen;
	if (entry->is_chosen && (log->filter->outcomes || log->n_chosen <= DRAWN_MAX))
		entry->brief = show_brief(&msg);
	return 0;
}

static int link_entries(struct log *log)
{
	uint32_t *next = calloc(flows_count(log->flows) + 1, sizeof(*next)), i;

	if (!next)
		return -ENOMEM;
	for (i = log->count; i-- > 0;) {
		uint32_t *of_flow = &next[log->entry[i].step.flow->number];

		log->entry[i].next = *of_flow;
		*of_flow = i;
	}
	free(next);
	return 0;
}

/* Return: the next message of a flow that is of a kind, or from an end; NULL: there is none. */
static const struct log_entry *next_entry(const struct log *log, const struct log_entry *entry,
					  enum cm_attr attr, enum flow_end from)
{
	while (entry->next) {
		entry = &log->entry[entry->next];
		if (!entry->step.is_stray && (entry->attr == attr || entry->step.from == from))
			return entry;
	}
	return NULL;
}

/* Where only one end was seen, nothing is known of answers. */
static enum fate fate_of(const struct log *log, const struct log_entry *entry)
{
	static const struct {
		enum cm_attr attr;
		enum delay_part part;
		bool wants_answer;
	} kinds[] = {
		{ CM_ATTR_REQ, DELAY_REQUEST, true },  { CM_ATTR_REP, DELAY_CONFIRM, true },
		{ CM_ATTR_RTU, DELAY_ARRIVAL, false }, { CM_ATTR_DREQ, DELAY_N_PARTS, true },
		{ CM_ATTR_DREP, DELAY_CLOSE, false },  { CM_ATTR_SIDR_REQ, DELAY_N_PARTS, true },
	};
	const struct flow *flow = entry->step.flow;
	const enum flow_end other = (enum flow_end) !entry->step.from;
	const struct log_entry *next;
	bool is_lost;
	size_t k = 0;

	while (k < sizeof(kinds) / sizeof(kinds[0]) && kinds[k].attr != entry->attr)
		k++;
	if (k == sizeof(kinds) / sizeof(kinds[0]) || flow_is_one_sided(flow))
		return FATE_ANSWERED;
	is_lost = kinds[k].part != DELAY_N_PARTS && delay_cause(flow, kinds[k].part) == DELAY_LOSS;
	next = next_entry(log, entry, entry->attr, kinds[k].wants_answer ? other : FLOW_ENDS);
	if (!kinds[k].wants_answer)
		return is_lost && next ? FATE_LOST : FATE_ANSWERED;
	if (next && next->step.from == other)
		return FATE_ANSWERED;
	return is_lost ? FATE_LOST : FATE_UNANSWERED;
}

/* Outcomes and answers are known only after the last message. */
static void keep_drawn(struct log *log)
{
	uint32_t i, n_kept = 0;

	for (i = 0; i < log->count; i++) {
		struct log_entry *entry = &log->entry[i];
		bool is_drawn = entry->is_chosen &&
				filter_takes_outcome(log->filter, entry->step.flow->outcome);

		if (is_drawn && n_kept < DRAWN_MAX) {
			entry->fate = fate_of(log, entry);
			log->entry[n_kept++] = *entry;
			continue;
		}
		log->is_cut |= is_drawn;
		free(entry->brief);
	}
	log->count = n_kept;
}

static int read_log(const struct reading *reading, struct log *log)
{
	int err = -ENOMEM;

	log->filter = &reading->filter;
	log->flows = flows_new(FLOWS_MAX, false);
	if (log->flows)
		err = reading_run(reading, take_observation, log);
	if ((!err || err == SOURCE_CUT) && link_entries(log))
		err = -ENOMEM;
	keep_drawn(log);
	return err;
}

static void free_log(struct log *log)
{
	uint32_t i;

	for (i = 0; i < log->count; i++)
		free(log->entry[i].brief);
	free(log->entry);
	flows_free(log->flows);
}

/* --- the page ------------------------------------------------------------- */

static const char *const head =
	"<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
	"<meta name=\"viewport\" content=\"width=device-width\">\n"
	"<meta http-equiv=\"Content-Security-Policy\" "
	"content=\"default-src 'none'; style-src 'unsafe-inline'\">\n";

static const char *const style =
	"<style>\n"
	"body { font: 13px sans-serif; margin: 16px; color: #222; background: #fff }\n"
	"h1 { font-size: 17px; overflow-wrap: anywhere }\n"
	".legend span { display: inline-block; margin-right: 18px }\n"
	".legend i { display: inline-block; width: 14px; height: 10px; margin-right: 5px }\n"
	".page { display: flex; overflow-x: auto; border: 1px solid #ccc; margin-top: 12px }\n"
	".labels { position: sticky; left: 0; flex: none; width: 330px; background: #fff; "
	"border-right: 1px solid #ccc; z-index: 1 }\n"
	".label { height: 96px; box-sizing: border-box; padding: 4px 8px; overflow: hidden; border-top: 1px solid #eee }\n"
	".label b { display: block }\n"
	".label .failed { color: #b00020 } .label .fine { color: #1b7a3d }\n"
	"svg { flex: none }\n"
	".end { stroke: #999 } .lane { stroke: #eee }\n"
	".gap { fill: #fff3cd } .gaptext { fill: #8a6d00; font-size: 11px; text-anchor: middle }\n"
	".message line { stroke: #2456a6; stroke-width: 1.6 } .message path { fill: #2456a6 }\n"
	".message text { font-size: 10px; text-anchor: middle }\n"
	".repeated line { stroke: #e07b00 } .repeated path { fill: #e07b00 }\n"
	".refused line { stroke: #b00020 } .refused path { fill: #b00020 }\n"
	".ignored line { stroke: #999; stroke-dasharray: 4 3 } .ignored path { fill: #999 }\n"
	".message .cross { fill: none; stroke: #b00020; stroke-width: 2.5 }\n"
	".message circle { fill: #fff; stroke: #2456a6; stroke-width: 1.6 }\n"
	".lost line { stroke-dasharray: 5 3 }\n"
	".message:hover line, .message:focus line { stroke-width: 4 }\n"
	".message:hover text, .message:focus text { font-weight: bold }\n"
	".message:focus { outline: none } a { color: inherit }\n"
	"article { max-width: 60em; border-top: 1px solid #ccc; margin-top: 14px }\n"
	"h2 { font-size: 14px; margin-bottom: 4px } p { margin: 4px 0 }\n"
	"h2.failed { color: #b00020 } h2.fine { color: #1b7a3d }\n"
	"@media (max-width: 700px) { body { margin: 6px } .labels { width: 130px }\n"
	".label { font-size: 11px; padding: 2px 4px } .label .what { display: none } }\n"
	"@media print { .page { overflow: visible } .labels { position: static }\n"
	"article { break-inside: avoid } }\n"
	".time { fill: #666; font-size: 10px; text-anchor: middle }\n"
	"</style>\n";

static const char *const legend =
	"<p class=\"legend\"><span><i style=\"background:#2456a6\"></i>message</span>"
	"<span><i style=\"background:#e07b00\"></i>repeated</span>"
	"<span><i style=\"background:#b00020\"></i>REJ</span>"
	"<span><i style=\"background:#999\"></i>ignored by its receiver</span>"
	"<span>&#x2715; lost, or its answer</span><span>&#x25cb; nothing answered it</span>"
	"<span><i style=\"background:#fff3cd\"></i>nothing for a second or more</span>"
	"Times are not to scale. Point at an arrow to see its fields; below, each connection is "
	"explained.</p>\n";

static void put_text(const char *text, FILE *out)
{
	for (; *text; text++) {
		switch (*text) {
		case '<':
			fputs("&lt;", out);
			break;
		case '>':
			fputs("&gt;", out);
			break;
		case '&':
			fputs("&amp;", out);
			break;
		case '"':
			fputs("&quot;", out);
			break;
		default:
			putc(*text, out);
		}
	}
}

/* --- positions ------------------------------------------------------------ */

static double time_s(const struct log *log, uint32_t from, uint32_t to)
{
	return clock_span_s(log->entry[from].time_ns, log->entry[to].time_ns);
}

static void place_messages(struct page *page)
{
	double x = MARGIN_PX, us;
	uint32_t i;

	for (i = 0; i < page->log->count; i++) {
		if (i > 0) {
			us = time_s(page->log, i - 1, i) * 1e6;
			x += STEP_PX + (us > 1 ? DECADE_PX * log10(us) : 0);
		}
		page->x[i] = x;
	}
	page->width = x + MARGIN_PX + STEP_PX;
}

static void place_lanes(struct page *page)
{
	const struct flow *flow;
	uint32_t i;

	for (i = 0; i < page->log->count; i++) {
		flow = page->log->entry[i].step.flow;
		if (page->lane[flow->number - 1])
			continue;
		page->flow[page->n_lanes++] = flow;
		page->lane[flow->number - 1] = page->n_lanes;
	}
}

static unsigned int lane_y(const struct page *page, const struct flow *flow)
{
	return TOP_PX + (page->lane[flow->number - 1] - 1) * LANE_PX;
}

/* --- lanes --------------------------------------------------------------- */

static void put_filled(const struct page *page, const struct context *context, const char *text)
{
	char *filled = explain_text(context, text);

	put_text(filled ? filled : "", page->out);
	free(filled);
}

static void put_label(const struct page *page, const struct flow *flow)
{
	const struct context context = { page->log->flows, flow, page->log->end_ns };
	const struct advice *advice = advice_find(&context);
	char active[FLOW_WHO_BYTES], passive[FLOW_WHO_BYTES];

	fprintf(page->out,
		"<div class=\"label\"><b><a href=\"#c%u\">#%u %s &rarr; %s</a></b><span class=\"%s\">",
		flow->number, flow->number, flow_who(flow, FLOW_ACTIVE, active),
		flow_who(flow, FLOW_PASSIVE, passive), advice ? "failed" : "fine");
	put_text(flow_outcome_text(flow->outcome), page->out);
	fputs("</span><br><span class=\"what\">", page->out);
	if (advice)
		put_filled(page, &context, advice->what);
	fputs("</span></div>\n", page->out);
}

static void put_labels(const struct page *page)
{
	uint32_t i;

	fprintf(page->out, "<div class=\"labels\"><div style=\"height:%upx\"></div>\n", TOP_PX);
	for (i = 0; i < page->n_lanes; i++)
		put_label(page, page->flow[i]);
	fputs("</div>\n", page->out);
}

static void put_paragraph(const struct page *page, const struct context *context, const char *title,
			  const char *text)
{
	fprintf(page->out, "<p><b>%s</b> ", title);
	put_filled(page, context, text);
	fputs("</p>\n", page->out);
}

static void put_explanation(const struct page *page, const struct flow *flow)
{
	const struct context context = { page->log->flows, flow, page->log->end_ns };
	const struct advice *advice = advice_find(&context);
	char title[FLOW_TITLE_BYTES];

	fprintf(page->out, "<article id=\"c%u\"><h2 class=\"%s\">", flow->number,
		advice ? "failed" : "fine");
	put_text(flow_title(flow, title), page->out);
	fprintf(page->out, ": %s</h2>\n", flow_outcome_text(flow->outcome));
	if (!advice) {
		put_paragraph(page, &context, "Time:", NULL);
	} else {
		put_paragraph(page, &context, "What:", advice->what);
		put_paragraph(page, &context, "Cause:", advice->cause);
		put_paragraph(page, &context, "Remedy:", advice->remedy);
	}
	fputs("</article>\n", page->out);
}

static void put_lane(const struct page *page, const struct flow *flow)
{
	static const unsigned int ends[] = { ACTIVE_PX, PASSIVE_PX };
	const unsigned int y = lane_y(page, flow);
	size_t i;

	fprintf(page->out, "<line class=\"lane\" x1=\"0\" y1=\"%u\" x2=\"%.0f\" y2=\"%u\"/>\n", y,
		page->width, y);
	for (i = 0; i < sizeof(ends) / sizeof(ends[0]); i++)
		fprintf(page->out,
			"<line class=\"end\" x1=\"0\" y1=\"%u\" x2=\"%.0f\" y2=\"%u\"/>\n",
			y + ends[i], page->width, y + ends[i]);
}

static void put_gap(const struct page *page, uint32_t i)
{
	const double s = time_s(page->log, i - 1, i);
	const double from = page->x[i - 1] + STEP_PX / 2.0, to = page->x[i] - STEP_PX / 2.0;

	if (s < GAP_S)
		return;
	fprintf(page->out,
		"<rect class=\"gap\" x=\"%.0f\" y=\"0\" width=\"%.0f\" height=\"%u\"/>"
		"<text class=\"gaptext\" x=\"%.0f\" y=\"24\">%.1f s</text>\n",
		from, to - from, TOP_PX + page->n_lanes * LANE_PX, (from + to) / 2, s);
}

/* --- messages ------------------------------------------------------------ */

static const char *class_of(const struct log_entry *entry)
{
	if (entry->step.is_stray)
		return "message ignored";
	if (entry->step.nth > 1)
		return "message repeated";
	if (entry->attr == CM_ATTR_REJ ||
	    (entry->attr == CM_ATTR_SIDR_REP && entry->step.flow->outcome == FLOW_REJECTED))
		return "message refused";
	return "message";
}

static void put_tip(const struct page *page, uint32_t i)
{
	const struct log_entry *entry = &page->log->entry[i];

	fprintf(page->out, "<title>%s at %.6f s, connection #%u", cm_msg_layout(entry->attr)->name,
		time_s(page->log, 0, i), entry->step.flow->number);
	if (entry->step.nth > 1)
		fprintf(page->out, ", repeated: number %u", entry->step.nth);
	if (entry->step.is_stray)
		fputs(", ignored", page->out);
	if (entry->fate)
		fputs(entry->fate == FATE_LOST ? ", lost, or its answer" : ", without an answer",
		      page->out);
	if (!entry->step.flow->is_sidr)
		fprintf(page->out, "\n%s | %s", cm_state_str(entry->step.state[FLOW_ACTIVE]),
			cm_state_str(entry->step.state[FLOW_PASSIVE]));
	putc('\n', page->out);
	put_text(entry->brief ? entry->brief : "", page->out);
	fputs("</title>", page->out);
}

/* What is lost ends with a cross before it arrives, and what nothing answers with a circle. */
static void put_message(const struct page *page, uint32_t i)
{
	const struct log_entry *entry = &page->log->entry[i];
	const unsigned int y = lane_y(page, entry->step.flow);
	const bool down = entry->step.from == FLOW_ACTIVE;
	const unsigned int from = y + (down ? ACTIVE_PX : PASSIVE_PX);
	const enum fate fate = entry->fate;
	const int way = (PASSIVE_PX - ACTIVE_PX) * (fate ? 3 : 4) / 4;
	const unsigned int to = down ? from + (unsigned int)way : from - (unsigned int)way;
	const double x = page->x[i], tip = x + 8;

	fprintf(page->out, "<g class=\"%s%s\" tabindex=\"0\">", class_of(entry),
		fate ? " lost" : "");
	put_tip(page, i);
	fprintf(page->out, "<line x1=\"%.0f\" y1=\"%u\" x2=\"%.0f\" y2=\"%u\"/>", x, from, tip, to);
	if (fate == FATE_LOST)
		fprintf(page->out, "<path class=\"cross\" d=\"M%.0f %u l8 8 m0 -8 l-8 8\"/>",
			tip - 4, to - 4);
	else if (fate)
		fprintf(page->out, "<circle cx=\"%.0f\" cy=\"%u\" r=\"4\"/>", tip, to);
	else
		fprintf(page->out, "<path d=\"M%.0f %u l-6 %d l7 -1z\"/>", tip, to, down ? -8 : 9);
	fprintf(page->out, "<text x=\"%.0f\" y=\"%u\">%s</text></g>\n", x + 4,
		down ? from - 5 : from + 13, cm_msg_layout(entry->attr)->name);
}

static void put_picture(const struct page *page)
{
	uint32_t i;

	fprintf(page->out,
		"<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%u\">\n",
		page->width, TOP_PX + page->n_lanes * LANE_PX + 4);
	for (i = 1; i < page->log->count; i++)
		put_gap(page, i);
	for (i = 0; i < page->n_lanes; i++)
		put_lane(page, page->flow[i]);
	for (i = 0; i < page->log->count; i++) {
		fprintf(page->out, "<text class=\"time\" x=\"%.0f\" y=\"12\">%.3f</text>\n",
			page->x[i], time_s(page->log, 0, i));
		put_message(page, i);
	}
	fputs("</svg>\n", page->out);
}

/* Return: 0 or -ENOMEM. */
static int put_page(const struct log *log, const char *title, FILE *out)
{
	const size_t n_flows = flows_count(log->flows);
	struct page page = { .log = log, .out = out };
	int err = -ENOMEM;
	uint32_t i;

	page.x = calloc(log->count + 1, sizeof(*page.x));
	page.lane = calloc(n_flows + 1, sizeof(*page.lane));
	page.flow = calloc(n_flows + 1, sizeof(*page.flow));
	if (page.x && page.lane && page.flow) {
		place_messages(&page);
		place_lanes(&page);
		fprintf(out, "%s<title>purecm: ", head);
		put_text(title, out);
		fprintf(out, "</title>\n%s</head><body>\n<h1>", style);
		put_text(title, out);
		fprintf(out, ": %u connections, %u messages</h1>\n%s<div class=\"page\">\n",
			page.n_lanes, log->count, legend);
		put_labels(&page);
		put_picture(&page);
		fputs("</div>\n", out);
		for (i = 0; i < page.n_lanes; i++)
			put_explanation(&page, page.flow[i]);
		fputs("</body></html>\n", out);
		err = 0;
	}
	free(page.x);
	free(page.lane);
	free(page.flow);
	return err;
}

/* --- the command ---------------------------------------------------------- */

static int write_page(const struct reading *reading, const struct log *log, const char *path)
{
	const bool is_stdout = !path || strcmp(path, "-") == 0;
	FILE *out = is_stdout ? stdout : command_create(path);
	int err = out ? put_page(log, reading_name(reading), out) : 0;
	bool is_broken = !out || ferror(out);

	if (out && !is_stdout)
		is_broken |= fclose(out) != 0;
	if (is_broken && !is_stdout)
		complain("%s cannot be written: %s", path, strerror(errno));
	return is_broken ? -EIO : err;
}

/* @path: NULL, "-": standard output. Return: exit status. */
static int draw(const struct reading *reading, const char *path)
{
	struct log log = { .count = 0 };
	int err = reading_check_output(reading, path), written = 0;

	if (!err)
		err = read_log(reading, &log);
	if (log.is_cut)
		complain("%s: only the first %u messages are drawn; choose connections, see "
			 "--help",
			 reading_name(reading), DRAWN_MAX);
	if (!err || err == SOURCE_CUT)
		written = write_page(reading, &log, path);
	if (err == -ENOMEM || written == -ENOMEM)
		complain("the page cannot be drawn: %s", strerror(ENOMEM));
	free_log(&log);
	return err || written ? STATUS_FAILED : STATUS_OK;
}

struct timeline {
	struct reading reading; /* first */
	const char *output;
};

/* clang-format off */
static const struct command_option options[] = {
	{ "output", 'o', "FILE", "the page; - for standard output, as without it",
	  COMMAND_TEXT_AT(timeline, output) },
	{ 0 },
};
/* clang-format on */

static const struct command_line usage = {
	.args = "[FILE]",
	.doc = "Draws connections as swim lanes and messages as arrows, in a page that needs "
	       "nothing but a browser. Repetitions and gaps are coloured; point at an arrow to "
	       "see its fields.",
	.options = options,
	.more = reading_options,
	.take_arg = reading_take_file,
	.check = reading_check,
};

int timeline_main(int argc, char **argv)
{
	struct timeline timeline = { .output = NULL };

	command_parse(&usage, argc, argv, &timeline);
	return draw(&timeline.reading, timeline.output);
}
