/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The interface of a subcommand of purecm: a row in the table of main.c, and functions for error
 * messages.
 */
#ifndef TOOLS_PURECM_SUBCOMMAND_H
#define TOOLS_PURECM_SUBCOMMAND_H

#include <limits.h>
#include <signal.h>
#include <argp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

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

/* Where the value of an option goes: to a member of the command's input. */
enum command_value {
	COMMAND_FLAG,	 /* a bool, which becomes true */
	COMMAND_TEXT,	 /* a const char * */
	COMMAND_NUMBER,	 /* a uint32_t from least to most */
	COMMAND_SECONDS, /* a double from least to most */
	COMMAND_TAKEN,	 /* by a function */
};

/* A row of a table that ends with an empty one; a row with @doc only is a heading. */
struct command_option {
	const char *name;
	int letter;	 /* 0: none; a later row has none if it is taken */
	const char *arg; /* the name of its value; NULL: it has none */
	const char *doc;
	enum command_value value;
	size_t at; /* offset of the member */
	double least, most;
	bool is_optional; /* the value */
	double preset;	  /* of a number whose value is left out */

	/* @value is NULL if it is optional and left out. */
	void (*take)(void *input, char *value, struct argp_state *state);
};

#define COMMAND_FLAG_AT(type, member) .value = COMMAND_FLAG, .at = offsetof(struct type, member)
#define COMMAND_TEXT_AT(type, member) .value = COMMAND_TEXT, .at = offsetof(struct type, member)
#define COMMAND_NUMBER_AT(type, member, a, b) \
	.value = COMMAND_NUMBER, .at = offsetof(struct type, member), .least = (a), .most = (b)
#define COMMAND_SECONDS_AT(type, member, a, b) \
	.value = COMMAND_SECONDS, .at = offsetof(struct type, member), .least = (a), .most = (b)
#define COMMAND_TAKEN_BY(function) .value = COMMAND_TAKEN, .take = (function)

/* The command line of a subcommand. */
struct command_line {
	const char *args; /* for its usage; NULL: it has none */
	const char *doc;
	const struct command_option *options;
	const struct command_option *more; /* options that it shares with others; NULL: none */
	void (*take_arg)(void *input, char *arg, struct argp_state *state);
	void (*check)(const void *input, struct argp_state *state); /* all together; may be NULL */
	bool has_colors;					    /* --color */
	unsigned int flags;					    /* ARGP_* */
};

/**
 * command_parse() - parse the command line of a subcommand
 * @line:  its usage begins with "purecm NAME"
 * @input: where the values go
 *
 * Does not return on --help (status 0) or on an invalid command line (status 2).
 */
void command_parse(const struct command_line *line, int argc, char **argv, void *input);

/**
 * command_create() - create a file for output, readable by its owner only
 *
 * What has that name, also a link, is replaced, not written to: in a folder of all users it may be
 * another's. A device, and a pipe of ours, are written to.
 *
 * Return: NULL with errno.
 */
FILE *command_create(const char *path);

enum command_color {
	COLOR_NONE, /* ends a colour */
	COLOR_BAD,
	COLOR_NOTE,
	COLOR_GOOD,
	COLOR_FAINT,
};

/**
 * command_color() - begin a colour on standard output, or end it: on a terminal, unless NO_COLOR is
 * set or --color decides
 */
void command_color(enum command_color color);

/**
 * command_catch_end() - let SIGINT, SIGTERM and SIGHUP set command_is_over, and interrupt a wait
 */
void command_catch_end(void);
extern volatile sig_atomic_t command_is_over;

/* How the caller handles SIGPIPE. */
extern void (*command_sigpipe)(int);

/** command_exec() - like execvp(), with the caller's handling of SIGPIPE */
int command_exec(const char *program, char **argv);

/** command_sleep() - sleep for seconds, or until a signal */
void command_sleep(double s);

/** complain() - print "purecm: ..." and a newline on standard error, after flushing stdout */
void complain(const char *format, ...) __attribute__((format(printf, 1, 2)));

/** command_end() - flush standard output. Return: @status, or STATUS_FAILED if that fails. */
int command_end(int status);

#define PAGE_WIDTH_MIN 40

/**
 * page_width() - columns of standard output: of the terminal, else $COLUMNS, else 0 for no limit
 */
unsigned int page_width(void);

/**
 * page_fill() - print words, filled to a width
 * @text:   words separated by blanks; words are not broken
 * @column: the present column
 * @indent: of all lines except the first, in columns
 * @width:  0 for no limit
 */
void page_fill(const char *text, unsigned int column, unsigned int indent, unsigned int width,
	       FILE *out);

/** page_time() - print a time since 1970, "2026-11-22 09:35:58.123", as local time. */
void page_time(uint64_t time_ns, FILE *out);

/**
 * run_find_library() - find purecm's librdmacm.so.1
 * @given: path from the user, or NULL for the one installed with this program
 * @ret:   its absolute path
 *
 * Return: 0; -ENOENT or -EINVAL, after an error message, if it is missing or not purecm's.
 */
int run_find_library(const char *given, char ret[PATH_MAX]);

/** run_find_bytes() - find bytes in a file, and what follows them. Return: whether they are there.
 */
bool run_find_bytes(const char *path, const void *wanted, size_t n, void *ret_after,
		    size_t n_after);

/** run_is_purecm() - return whether a file is purecm's library, which contains PURECM_LOG */
bool run_is_purecm(const char *path);

#endif
