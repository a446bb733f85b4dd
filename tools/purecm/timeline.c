/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * purecm timeline: a web page with a picture of a capture. Connections are lanes with a line for
 * each end; messages are arrows between them.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "tools/purecm/command.h"
#include "tools/purecm/timeline_page.h"

enum key {
	KEY_OUTPUT = 'o', /* --outcome has no letter here */
};

struct timeline {
	struct reading reading;
	const char *output;
	struct filter filter;
};

/* clang-format off */
static const struct argp_option option_table[] = {
	{ "output", KEY_OUTPUT, "FILE", 0, "the page; - for standard output, as without it", 0 },
	{ 0 },
};
/* clang-format on */

static error_t parse_option(int key, char *value, struct argp_state *state)
{
	struct timeline *timeline = state->input;

	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = &timeline->reading;
		state->child_inputs[1] = &timeline->filter;
		return 0;
	case KEY_OUTPUT:
		timeline->output = value;
		return 0;
	case ARGP_KEY_END:
		return 0;
	}
	return ARGP_ERR_UNKNOWN;
}

static const struct argp argp = {
	.options = option_table,
	.parser = parse_option,
	.children = reading_and_filter,
	.doc = "Draws connections as swim lanes and messages as arrows, in a page that needs "
	       "nothing but a browser. Repetitions and gaps are coloured; point at an arrow to "
	       "see its fields.",
};

static int write_page(const struct timeline *timeline, const struct message_log *log)
{
	const bool is_stdout = !timeline->output || strcmp(timeline->output, "-") == 0;
	FILE *out = is_stdout ? stdout : command_create(timeline->output);
	int err = 0;

	if (!out) {
		complain("%s cannot be written: %s", timeline->output, strerror(errno));
		return -EIO;
	}
	timeline_page(log, reading_name(&timeline->reading), out);
	if (is_stdout)
		return 0;
	if (ferror(out))
		err = -EIO;
	if (fclose(out))
		err = -errno;
	if (err)
		complain("%s: not all of it could be written: %s", timeline->output,
			 strerror(-err));
	return err;
}

int timeline_main(int argc, char **argv)
{
	struct timeline timeline = { .reading = { .file = NULL } };
	struct message_log log;
	bool is_whole;
	int err;

	command_parse(&argp, argc, argv, 0, &timeline);
	err = message_log_read(&timeline.reading, &timeline.filter, &log);
	if (err && err != SOURCE_CUT)
		return STATUS_FAILED;
	is_whole = !err;
	if (log.is_cut)
		complain("%s: only the first %u messages are drawn; choose connections, see "
			 "--help",
			 reading_name(&timeline.reading), MESSAGE_LOG_MAX);
	err = write_page(&timeline, &log);
	message_log_fini(&log);
	return err || !is_whole ? STATUS_FAILED : STATUS_OK;
}
