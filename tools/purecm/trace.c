/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * purecm trace: shows every message of a source as a line, as a chart, with the full decode or as
 * JSON; and writes them to a file.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "tools/purecm/subcommand.h"
#include "tools/purecm/pcapng.h"
#include "tools/purecm/reading.h"
#include "tools/purecm/show.h"

#define COMMENT_BYTES 128

struct trace {
	struct reading reading; /* first */
	const char *write;
	bool verbose;
	bool json;
	bool chart;
	uint32_t count; /* 0: all */

	show_function *write_entry;
	struct show show;
	struct flows *flows;
	struct flows *known; /* from a first pass: outcomes of flows; or NULL */
	struct pcapng *file;
	uint64_t n_shown;
};

static void check_options(const void *input, struct argp_state *state)
{
	const struct trace *trace = input;

	reading_check(&trace->reading, state);
	if (trace->verbose + trace->json + trace->chart > 1)
		argp_error(state, "-v, --json and --chart exclude each other");
}

/* clang-format off */
static const struct command_option options[] = {
	{ "write", 'w', "FILE",
	  "write what is shown as pcapng, which Wireshark and tshark read; - for standard output, "
	  "and nothing else is written there then", COMMAND_TEXT_AT(trace, write) },
	{ "verbose", 'v', NULL, "every field of every message", COMMAND_FLAG_AT(trace, verbose) },
	{ "count", 'c', "N", "end after so many messages",
	  COMMAND_NUMBER_AT(trace, count, 1, UINT32_MAX) },
	{ "chart", 0, NULL,
	  "one connection as a sequence chart: the first that the filters let through",
	  COMMAND_FLAG_AT(trace, chart) },
	{ "json", 'j', NULL, "an object a line", COMMAND_FLAG_AT(trace, json) },
	{ "time", 't', NULL, "times of day, not since the first message",
	  COMMAND_FLAG_AT(trace, show.is_absolute) },
	{ 0 },
};
/* clang-format on */

static const struct command_line usage = {
	.args = "[FILE]",
	.doc = "Shows the messages of connection managers: time, connection, both ends, "
	       "message, the states it leads them to, and the fields that matter.",
	.options = options,
	.more = reading_options,
	.has_colors = true,
	.take_arg = reading_take_file,
	.check = check_options,
};

/* --- one message --------------------------------------------------------- */

static enum flow_outcome outcome_of(const struct trace *trace, const struct flow *flow)
{
	/* A file that is still being written has grown, or there are too many. */
	if (!trace->known || flow->number > flows_count(trace->known))
		return flow->outcome;
	return flows_get(trace->known, flow->number - 1)->outcome;
}

static bool is_shown(struct trace *trace, const struct shown *shown)
{
	const struct flow *flow = shown->step->flow;

	if (!filter_takes_flow(&trace->reading.filter, flow) ||
	    !filter_takes_outcome(&trace->reading.filter, outcome_of(trace, flow)) ||
	    !filter_takes_message(&trace->reading.filter, shown->msg))
		return false;
	/* The first flow that matches is drawn. */
	if (trace->chart)
		trace->reading.filter.connection = flow->number;
	return true;
}

static void write_message(struct trace *trace, const struct shown *shown)
{
	char comment[COMMENT_BYTES];
	const struct flow_step *step = shown->step;

	if (!trace->file)
		return;
	snprintf(comment, sizeof(comment), "purecm: connection #%u, %s | %s%s%s",
		 step->flow->number, cm_state_str(step->state[FLOW_ACTIVE]),
		 cm_state_str(step->state[FLOW_PASSIVE]), step->nth > 1 ? ", repeated" : "",
		 step->is_stray ? ", ignored" : "");
	pcapng_put(trace->file, shown->observation, comment);
}

/* Times are relative to the first message, so its absolute time is shown for a recording. */
static void begin_show(struct trace *trace, const struct observation *observation)
{
	if (trace->reading.recorded && !trace->json && !trace->show.is_absolute &&
	    !trace->show.has_begun) {
		fputs("0 is ", stdout);
		page_time(observation->time_ns, stdout);
		putchar('\n');
	}
	show_begin(&trace->show, observation);
}

static int take_message(struct trace *trace, const struct observation *observation,
			const struct cm_msg *msg)
{
	struct flow_step step;
	const struct shown shown = { observation, msg, &step };
	int err = flows_take(trace->flows, observation, msg, &step);

	if (err || !is_shown(trace, &shown))
		return err;
	trace->n_shown++;
	write_message(trace, &shown);
	if (trace->write_entry) {
		begin_show(trace, observation);
		trace->write_entry(&trace->show, &shown);
	}
	return trace->n_shown == trace->count ? READING_ENOUGH : 0;
}

static int take_other(struct trace *trace, const struct observation *observation)
{
	if (trace->chart || !filter_takes_other(&trace->reading.filter, observation))
		return 0;
	trace->n_shown++;
	if (trace->file)
		pcapng_put(trace->file, observation, NULL);
	if (trace->write_entry) {
		begin_show(trace, observation);
		if (trace->json)
			show_other_json(&trace->show, observation);
		else
			show_other(&trace->show, observation, trace->verbose);
	}
	return trace->n_shown == trace->count ? READING_ENOUGH : 0;
}

static int take_observation(void *arg, const struct observation *observation)
{
	struct trace *trace = arg;
	struct cm_msg msg;

	if (!observation_decode(observation, &msg))
		return take_other(trace, observation);
	return take_message(trace, observation, &msg);
}

/* --- all of them --------------------------------------------------------- */

/* Outcomes are known only after the last message, which requires a first pass. */
static int read_ahead(struct trace *trace, struct source *source)
{
	int err;

	if (!trace->reading.filter.outcomes)
		return 0;
	if (trace->reading.recorded) {
		err = reading_source_flows(source, trace->reading.probes, &trace->known);
		recorded_rewind(source);
	} else {
		err = reading_flows(&trace->reading, &trace->known);
	}
	return err == SOURCE_CUT ? 0 : err; /* the second pass reaches that end too */
}

static show_function *choose_show(const struct trace *trace)
{
	if (trace->write && strcmp(trace->write, "-") == 0)
		return NULL;
	if (trace->json)
		return show_json;
	if (trace->chart)
		return show_chart;
	if (trace->verbose)
		return show_verbose;
	/* With a file only, messages are not printed. */
	return trace->write ? NULL : show_line;
}

static int check_input(const struct trace *trace)
{
	const struct reading *reading = &trace->reading;

	if (reading_check_output(reading, trace->write))
		return -EINVAL;
	if (reading->filter.outcomes && reading_is_once(reading)) {
		complain("--outcome reads a capture twice, which %s does not allow; name a file",
			 reading_name(reading));
		return -EINVAL;
	}
	return 0;
}

static int run_trace(struct trace *trace)
{
	struct source *source;
	int err = check_input(trace);

	if (!err)
		err = reading_open(&trace->reading, &source);
	if (err)
		return err;
	err = read_ahead(trace, source);
	if (!err && trace->write)
		err = pcapng_open(trace->write, &trace->file);
	if (!err)
		err = reading_source(source, trace->reading.probes, take_observation, trace);
	source->close(source);
	if (pcapng_close(trace->file) && !err)
		err = -EIO;
	return err;
}

int trace_main(int argc, char **argv)
{
	struct trace trace = { .reading = { .file = NULL } };
	int err;

	command_parse(&usage, argc, argv, &trace);
	/* Live messages must be shown at once; tracer.c flushes itself. */
	if (trace.reading.interface || (trace.reading.file && reading_is_once(&trace.reading)))
		setlinebuf(stdout);
	else
		setvbuf(stdout, NULL, _IOFBF, BUFSIZ);
	/* Numbers have to be those of the first pass, and of explain: they drop no flow. */
	trace.flows = flows_new(reading_is_once(&trace.reading) ? FLOWS_ROLLING : FLOWS_MAX, true);
	trace.write_entry = choose_show(&trace);
	trace.show.out = stdout;
	trace.show.width = page_width();
	err = trace.flows ? run_trace(&trace) : -ENOMEM;
	if (trace.write && !err)
		fprintf(stderr, "%llu messages written to %s\n", (unsigned long long)trace.n_shown,
			trace.write);
	flows_free(trace.flows);
	flows_free(trace.known);
	return err ? STATUS_FAILED : STATUS_OK;
}
