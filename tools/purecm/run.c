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

struct run {
	const char *library;
	const char *socket;
	const char *retries;
	const char *retry_waits;
	double deadline_s; /* 0: not given */
	bool traces, warns, is_inline;
	char **program;
};

static void take_program(void *input, char *name, struct argp_state *state)
{
	(void)name;
	((struct run *)input)->program = state->argv + state->next - 1;
	state->next = state->argc;
}

static void check_options(const void *input, struct argp_state *state)
{
	const struct run *run = input;
	unsigned int first, last;
	const char *text = run->retries;
	char rest;

	if (text && (text[strspn(text, "0123456789")] || sscanf(text, "%9u", &first) != 1 ||
		     first > RETRIES_MAX))
		argp_error(state, "--retries: %s is no number up to %d", text, RETRIES_MAX);
	text = run->retry_waits;
	if (text &&
	    (!isdigit((unsigned char)*text) || strpbrk(text, " +-") ||
	     sscanf(text, "%9u,%9u%c", &first, &last, &rest) != 2 || first == 0 || first > last))
		argp_error(state, "--retry-waits: %s is not FIRST,LAST in milliseconds", text);
	if (!run->program)
		argp_error(state, "which program?");
}

/* clang-format off */
static const struct command_option options[] = {
	{ "trace", 't', NULL, "every message and every change of state on standard error",
	  COMMAND_FLAG_AT(run, traces) },
	{ "warn", 'w', NULL, "on standard error what is wrong and what mends it",
	  COMMAND_FLAG_AT(run, warns) },
	{ "inline", 'i', NULL,
	  "with a cmportd of its own: the program has the ports, alone on this host",
	  COMMAND_FLAG_AT(run, is_inline) },
	{ "socket", 's', "PATH", "of the cmportd to use", COMMAND_TEXT_AT(run, socket) },
	{ "deadline", 0, "SECONDS",
	  "a peer that says nothing for so long is unreachable; 50 without it",
	  COMMAND_SECONDS_AT(run, deadline_s, 0.001, UINT32_MAX / 1000) },
	{ "retries", 0, "N",
	  "how often a request, an answer or a disconnect request is repeated; 15 without it",
	  COMMAND_TEXT_AT(run, retries) },
	{ "retry-waits", 0, "FIRST,LAST",
	  "milliseconds before the first repetition; twice as many before each further one, LAST "
	  "at most", COMMAND_TEXT_AT(run, retry_waits) },
	{ "library", 'l', "FILE", "instead of the librdmacm.so.1 installed with this",
	  COMMAND_TEXT_AT(run, library) },
	{ 0 },
};
/* clang-format on */

static const struct command_line usage = {
	.args = "-- PROGRAM [ARGUMENT...]",
	.doc = "Runs a program over purecm instead of the kernel's connection manager. The exit "
	       "status is the program's.",
	.options = options,
	.take_arg = take_program,
	.check = check_options,
	.flags = ARGP_IN_ORDER,
};

static void set_variable(const char *variable, const char *value)
{
	if (value)
		setenv(variable, value, 1);
}

static void set_variables(const struct run *run)
{
	char ms[32];

	snprintf(ms, sizeof(ms), "%.0f", run->deadline_s * 1000);
	set_variable("PURECM_LOG", run->traces ? "debug" : run->warns ? "warn" : NULL);
	set_variable("PURECM_PORTD", run->is_inline ? "inline" : NULL);
	set_variable("PURECM_SOCKET", run->socket);
	set_variable("PURECM_CONNECT_TIMEOUT_MS", run->deadline_s > 0 ? ms : NULL);
	set_variable("PURECM_RETRIES", run->retries);
	set_variable("PURECM_RETRY_WAITS_MS", run->retry_waits);
}

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

	command_parse(&usage, argc, argv, &run);
	set_variables(&run);
	if (run_find_library(run.library, library) || preload_library(library))
		return STATUS_FAILED;
	if (run_check_program(run.program[0]))
		return STATUS_CANNOT_RUN;
	execvp(run.program[0], run.program);
	err = errno;
	complain("%s: %s", run.program[0], strerror(err));
	return err == ENOENT ? STATUS_NOT_FOUND : STATUS_CANNOT_RUN;
}
