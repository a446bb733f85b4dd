/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * purecm run: runs a program with purecm's librdmacm, whatever it was linked with.
 *
 * The library is preloaded. Because it has the name that programs request, librdmacm.so.1, the
 * dynamic linker uses it before searching any path that the program was built with.
 */
#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/purecm/command.h"
#include "tools/purecm/run_program.h"

#define STATUS_CANNOT_RUN 126 /* as in shells */
#define STATUS_NOT_FOUND  127
#define ENV_BYTES	  (2 * PATH_MAX)
#define RETRIES_MAX	  254

enum key {
	KEY_TRACE = 't',
	KEY_WARN = 'w',
	KEY_INLINE = 'i',
	KEY_LIBRARY = 'l',
	KEY_SOCKET = 's',
	KEY_DEADLINE = 512, /* long options only */
	KEY_RETRIES,
	KEY_RETRY_WAITS,
};

struct run {
	const char *library;
	char **program;
};

/* Variables that options set for the program. */
/* clang-format off */
static const struct {
	int key;
	const char *variable;
	const char *value; /* NULL: the option's */
} settings[] = {
	{ KEY_TRACE, "PURECM_LOG", "debug" },
	{ KEY_WARN, "PURECM_LOG", "warn" },
	{ KEY_INLINE, "PURECM_PORTD", "inline" },
	{ KEY_SOCKET, "PURECM_SOCKET", NULL },
	{ KEY_RETRIES, "PURECM_RETRIES", NULL },
	{ KEY_RETRY_WAITS, "PURECM_RETRY_WAITS_MS", NULL },
};

static const struct argp_option option_table[] = {
	{ "trace", KEY_TRACE, NULL, 0,
	  "every message and every change of state on standard error", 0 },
	{ "warn", KEY_WARN, NULL, 0, "on standard error what is wrong and what mends it", 0 },
	{ "inline", KEY_INLINE, NULL, 0,
	  "with a cmportd of its own: the program has the ports, alone on this host", 0 },
	{ "socket", KEY_SOCKET, "PATH", 0, "of the cmportd to use", 0 },
	{ "deadline", KEY_DEADLINE, "SECONDS", 0,
	  "a peer that says nothing for so long is unreachable; 50 without it", 0 },
	{ "retries", KEY_RETRIES, "N", 0,
	  "how often a request, an answer or a disconnect request is repeated; 15 without it", 0 },
	{ "retry-waits", KEY_RETRY_WAITS, "FIRST,LAST", 0,
	  "milliseconds before the first repetition; twice as many before each further one, LAST "
	  "at most", 0 },
	{ "library", KEY_LIBRARY, "FILE", 0,
	  "instead of the librdmacm.so.1 installed with this", 0 },
	{ 0 },
};
/* clang-format on */

static bool set_variable(int key, const char *value)
{
	size_t i;

	for (i = 0; i < sizeof(settings) / sizeof(settings[0]); i++) {
		if (settings[i].key == key) {
			setenv(settings[i].variable, settings[i].value ? settings[i].value : value,
			       1);
			return true;
		}
	}
	return false;
}

static void set_deadline(const char *text, struct argp_state *state)
{
	char ms[32], *end;
	double s = strtod(text, &end);

	if (*end || end == text || !(s >= 0.001 && s <= UINT32_MAX / 1000))
		argp_error(state, "--deadline: %s is no number of seconds", text);
	snprintf(ms, sizeof(ms), "%.0f", s * 1000);
	setenv("PURECM_CONNECT_TIMEOUT_MS", ms, 1);
}

static void check_retries(const char *text, struct argp_state *state)
{
	unsigned int n;
	char rest;

	if (!isdigit((unsigned char)*text) || sscanf(text, "%3u%c", &n, &rest) != 1 ||
	    n > RETRIES_MAX)
		argp_error(state, "--retries: %s is no number up to %d", text, RETRIES_MAX);
}

static void check_waits(const char *text, struct argp_state *state)
{
	unsigned int first, last;
	char rest;

	if (!isdigit((unsigned char)*text) || strpbrk(text, " +-") ||
	    sscanf(text, "%9u,%9u%c", &first, &last, &rest) != 2 || first == 0 || first > last)
		argp_error(state, "--retry-waits: %s is not FIRST,LAST in milliseconds", text);
}

static error_t parse_option(int key, char *value, struct argp_state *state)
{
	struct run *run = state->input;

	switch (key) {
	case KEY_DEADLINE:
		set_deadline(value, state);
		return 0;
	case KEY_RETRIES:
		check_retries(value, state);
		break;
	case KEY_RETRY_WAITS:
		check_waits(value, state);
		break;
	case KEY_LIBRARY:
		run->library = value;
		return 0;
	case ARGP_KEY_ARGS:
		run->program = state->argv + state->next;
		return 0;
	case ARGP_KEY_NO_ARGS:
		argp_error(state, "which program?");
		return 0;
	}
	return set_variable(key, value) ? 0 : ARGP_ERR_UNKNOWN;
}

static const struct argp argp = {
	.options = option_table,
	.parser = parse_option,
	.args_doc = "-- PROGRAM [ARGUMENT...]",
	.doc = "Runs a program over purecm instead of the kernel's connection manager. The exit "
	       "status is the program's.",
};

/* The caller's preloaded libraries follow ours. */
static int preload_library(const char *library)
{
	const char *others = getenv("LD_PRELOAD");
	char value[ENV_BYTES];
	int n;

	if (strpbrk(library, " :")) {
		complain("%s: a path with blanks or colons cannot be preloaded", library);
		return -EINVAL;
	}
	n = snprintf(value, sizeof(value), "%s%s%s", library, others && *others ? ":" : "",
		     others ? others : "");
	if (n >= (int)sizeof(value))
		return -ENAMETOOLONG;
	return setenv("LD_PRELOAD", value, 1) ? -errno : 0;
}

int run_main(int argc, char **argv)
{
	struct run run = { .library = NULL };
	char library[PATH_MAX];
	int err;

	command_parse(&argp, argc, argv, ARGP_IN_ORDER, &run);
	if (run_find_library(run.library, library) || preload_library(library))
		return STATUS_FAILED;
	if (run_check_program(run.program[0]))
		return STATUS_CANNOT_RUN;
	execvp(run.program[0], run.program);
	err = errno;
	complain("%s: %s", run.program[0], strerror(err));
	return err == ENOENT ? STATUS_NOT_FOUND : STATUS_CANNOT_RUN;
}
