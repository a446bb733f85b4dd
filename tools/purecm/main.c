/* SPDX-License-Identifier: BSD-2-Clause */
/* The program purecm: looks up the subcommand in a table and calls it. purecm(1) is its manual. */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "tools/purecm/subcommand.h"

/* Read by argp in the C library, so it must not be hidden, as everything else is. */
__attribute__((visibility("default"))) const char *argp_program_version = "purecm " PURECM_VERSION;

/* clang-format off */
/* In the order of `purecm --help`. */
static const struct command commands[] = {
	{ "run", "run a program over purecm, whatever it was linked with", run_main },
	{ "doctor", "test what connections need on this host, and the way to an address", doctor_main },
	{ "ping", "ask for an answer of the connection manager at an address", ping_main },
	{ "stat", "show ids, connections and counters of this host", stat_main },
	{ "top", "show them as they change, the kernel's as well", top_main },
	{ "export", "serve figures of this host to Prometheus", export_main },
	{ "trace", "show every message, a line each, a chart or the whole decode", trace_main },
	{ "explain", "explain each connection: what happened, why, and what helps", explain_main },
	{ "diff", "compare two captures, message by message", diff_main },
	{ "report", "pack what a bug report needs into one file", report_main },
	{ "drill", "run a script of messages and calls against any manager", drill_main },
	{ "timeline", "draw a capture as a web page", timeline_main },
	{ "certify", "find out what works between two hosts, and write it on a page", certify_main },
	{ "fabric", "make hosts with RDMA devices on a machine that has none", fabric_main },
};
/* clang-format on */

#define N_COMMANDS (sizeof(commands) / sizeof(commands[0]))

static void print_usage(FILE *out)
{
	size_t i;

	fputs("usage: purecm COMMAND [OPTION...]\n\nShows the messages of RDMA connection managers, and "
	      "explains why a connection fails.\n\n",
	      out);
	for (i = 0; i < N_COMMANDS; i++)
		fprintf(out, "  %-10s %s\n", commands[i].name, commands[i].summary);
	fputs("\n`purecm COMMAND --help` lists the options of each; purecm(1) is the manual.\n",
	      out);
}

static const struct command *find_command(const char *name)
{
	size_t i;

	for (i = 0; i < N_COMMANDS; i++) {
		if (strcmp(commands[i].name, name) == 0)
			return &commands[i];
	}
	return NULL;
}

/* For shell completion: names only. */
static void print_names(void)
{
	size_t i;

	for (i = 0; i < N_COMMANDS; i++)
		puts(commands[i].name);
}

static bool is_version(const char *option)
{
	return strcmp(option, "--version") == 0 || strcmp(option, "-V") == 0;
}

static int run_option(const char *option)
{
	if (strcmp(option, "--help") == 0 || strcmp(option, "-?") == 0 ||
	    strcmp(option, "-h") == 0 || strcmp(option, "help") == 0) {
		print_usage(stdout);
	} else if (is_version(option)) {
		puts(argp_program_version);
	} else if (strcmp(option, "--commands") == 0) {
		print_names();
	} else {
		complain("there is no command %s; `purecm --help` lists them", option);
		return STATUS_USAGE;
	}
	return command_end(STATUS_OK);
}

int main(int argc, char **argv)
{
	static char help[] = "--help";
	char *help_argv[] = { argv[0], argc > 2 ? argv[2] : NULL, help, NULL };
	const struct command *command;

	/* The caller may ignore SIGPIPE, but `purecm trace | head` should end silently. */
	command_sigpipe = signal(SIGPIPE, SIG_DFL);
	if (argc < 2) {
		print_usage(stderr);
		return STATUS_USAGE;
	}
	if (argc == 3 && strcmp(argv[1], "help") == 0)
		argv = help_argv;
	command = find_command(argv[1]);
	if (!command || (argc == 3 && is_version(argv[2])))
		return run_option(command ? argv[2] : argv[1]);
	return command_end(command->run(argc - 1, argv + 1));
}
