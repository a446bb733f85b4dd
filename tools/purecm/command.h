/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The interface of a subcommand of purecm: a row in the table of main.c, and functions for error
 * messages.
 */
#ifndef TOOLS_PURECM_COMMAND_H
#define TOOLS_PURECM_COMMAND_H

#include <argp.h>
#include <stdio.h>

#include "mad/cm_msg.h"

/* Exit statuses, also in purecm(1). */
#define STATUS_OK     0
#define STATUS_FAILED 1 /* failed, or found a problem */
#define STATUS_USAGE  2 /* invalid command line */

struct command {
	const char *name;
	const char *summary; /* one line of `purecm --help` */

	/* argv[0] is the subcommand's name. Return: the exit status. */
	int (*run)(int argc, char **argv);
};

/* The subcommands, a file each; script.c has four. */
int certify_main(int argc, char **argv);
int diff_main(int argc, char **argv);
int doctor_main(int argc, char **argv);
int drill_main(int argc, char **argv);
int explain_main(int argc, char **argv);
int export_main(int argc, char **argv);
int fabric_main(int argc, char **argv);
int ping_main(int argc, char **argv);
int report_main(int argc, char **argv);
int run_main(int argc, char **argv);
int stat_main(int argc, char **argv);
int timeline_main(int argc, char **argv);
int top_main(int argc, char **argv);
int trace_main(int argc, char **argv);

/**
 * command_parse() - argp_parse() for a subcommand
 * @argp:  its options; the usage line begins with "purecm NAME"
 * @flags: ARGP_*
 * @ret:   input of the parser
 *
 * Does not return on --help (status 0) or on an invalid command line (status 2).
 */
void command_parse(const struct argp *argp, int argc, char **argv, unsigned int flags, void *ret);

/** command_parse_pid() - parse the value of --pid; an invalid one ends the program with status 2 */
uint32_t command_parse_pid(const char *text, struct argp_state *state);

/** command_parse_seconds() - parse a number of seconds; an invalid one ends the program */
double command_parse_seconds(const char *text, const char *option, double min, double max,
			     struct argp_state *state);

/**
 * command_create() - create a file for output, readable by its owner only
 *
 * What has that name, also a link, is replaced, not written to: in a folder of all users it may be
 * another's. A device, and a pipe of ours, are written to.
 *
 * Return: NULL with errno.
 */
FILE *command_create(const char *path);

/** complain() - print "purecm: ..." and a newline on standard error, after flushing stdout */
void complain(const char *format, ...) __attribute__((format(printf, 1, 2)));

/** command_end() - flush standard output. Return: @status, or STATUS_FAILED if that fails. */
int command_end(int status);

#endif
