/* SPDX-License-Identifier: BSD-2-Clause */
/* Common functions of subcommands: parsing of options, error messages, termination. */
#include "tools/purecm/subcommand.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/text.h"

/* -h is an option that argp does not know. What follows a program that is run is that program's. */
static void name_help(int argc, char **argv, unsigned int flags)
{
	static char help[] = "--help";
	int i;

	for (i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
		if (flags & ARGP_IN_ORDER && argv[i][0] != '-')
			break;
		if (strcmp(argv[i], "-h") == 0)
			argv[i] = help;
	}
}

/* --- options -------------------------------------------------------------- */

#define ROWS_MAX      48
#define KEY_NO_LETTER 512

struct parsing {
	const struct command_line *line;
	void *input;
	const struct command_option *row[ROWS_MAX];
	struct argp_option option[ROWS_MAX + 1];
	size_t n;
	int group;
};

static bool has_letter(const struct parsing *parsing, int letter)
{
	size_t i;

	for (i = 0; i < parsing->n; i++) {
		if (parsing->option[i].key == letter)
			return true;
	}
	return !letter;
}

/* A heading begins a group. */
static void add_rows(struct parsing *parsing, const struct command_option *row)
{
	for (; row && row->doc; row++) {
		parsing->group += !row->name;
		parsing->row[parsing->n] = row;
		parsing->option[parsing->n] = (struct argp_option){
			.name = row->name,
			.key = !row->name			  ? 0
			       : has_letter(parsing, row->letter) ? KEY_NO_LETTER + (int)parsing->n
								  : row->letter,
			.arg = row->arg,
			.flags = row->is_optional ? OPTION_ARG_OPTIONAL : 0,
			.doc = row->doc,
			.group = parsing->group,
		};
		parsing->n++;
	}
}

static const char *color_when = "auto";

static void take_color(void *input, char *when, struct argp_state *state)
{
	(void)input;
	color_when = when ? when : "always";
	if (strcmp(color_when, "always") != 0 && strcmp(color_when, "never") != 0 &&
	    strcmp(color_when, "auto") != 0)
		argp_error(state, "--color: %s is not always, never or auto", when);
}

static const struct command_option color_options[] = {
	{ "color", 0, "WHEN", "always, never or auto: on a terminal, unless NO_COLOR is set",
	  COMMAND_TAKEN_BY(take_color), .is_optional = true },
	{ 0 },
};

void command_color(enum command_color color)
{
	static const char *const codes[] = { "\033[m", "\033[1;31m", "\033[33m", "\033[32m",
					     "\033[2m" };
	static enum command_color present;
	static int is_on = -1;
	const char *no_color = getenv("NO_COLOR");

	if (is_on < 0)
		is_on = strcmp(color_when, "auto")
				? *color_when == 'a'
				: isatty(STDOUT_FILENO) && !(no_color && *no_color);
	if (is_on && color != present)
		fputs(codes[color], stdout);
	present = color;
}

static double parse_number(const struct command_option *row, const char *text, const char *what,
			   struct argp_state *state)
{
	char *end;
	const double number = text ? strtod(text, &end) : row->preset;

	if (text && (*end || end == text || !(number >= row->least && number <= row->most) ||
		     (row->value == COMMAND_NUMBER && text[strspn(text, "0123456789")])))
		argp_error(state, "--%s: %s is no number%s from %g to %.10g", row->name, text, what,
			   row->least, row->most);
	return number;
}

static void store_value(const struct command_option *row, char *value, void *input,
			struct argp_state *state)
{
	void *member = (char *)input + row->at;

	switch (row->value) {
	case COMMAND_FLAG:
		*(bool *)member = true;
		break;
	case COMMAND_TEXT:
		*(const char **)member = value;
		break;
	case COMMAND_NUMBER:
		*(uint32_t *)member = (uint32_t)parse_number(row, value, "", state);
		break;
	case COMMAND_SECONDS:
		*(double *)member = parse_number(row, value, " of seconds", state);
		break;
	case COMMAND_TAKEN:
		row->take(input, value, state);
		break;
	}
}

static error_t parse_option(int key, char *value, struct argp_state *state)
{
	struct parsing *parsing = state->input;
	size_t i;

	if (key == ARGP_KEY_ARG && parsing->line->take_arg) {
		parsing->line->take_arg(parsing->input, value, state);
		return 0;
	}
	if (key == ARGP_KEY_END && parsing->line->check)
		parsing->line->check(parsing->input, state);
	for (i = 0; i < parsing->n; i++) {
		if (parsing->option[i].name && parsing->option[i].key == key) {
			store_value(parsing->row[i], value, parsing->input, state);
			return 0;
		}
	}
	return ARGP_ERR_UNKNOWN;
}

void command_parse(const struct command_line *line, int argc, char **argv, void *input)
{
	struct parsing parsing = { .line = line, .input = input };
	const struct argp argp = { .options = parsing.option,
				   .parser = parse_option,
				   .args_doc = line->args,
				   .doc = line->doc };
	char usage_name[64];
	uint64_t secret;

	/* Without random numbers only whoever forges addresses makes us slow. */
	if (getrandom(&secret, sizeof(secret), GRND_NONBLOCK) == sizeof(secret))
		hash_set_secret(secret);

	add_rows(&parsing, line->options);
	add_rows(&parsing, line->has_colors ? color_options : NULL);
	add_rows(&parsing, line->more);
	/* argp uses argv[0] as the program's name in messages and in the usage line. */
	snprintf(usage_name, sizeof(usage_name), "purecm %s", argv[0]);
	argv[0] = usage_name;
	argp_err_exit_status = STATUS_USAGE;
	name_help(argc, argv, line->flags);
	argp_parse(&argp, argc, argv, line->flags, NULL, &parsing);
}

/* --- files and messages --------------------------------------------------- */

/* Whether there is a device, or a pipe of ours. */
static bool may_write_to(const char *path)
{
	struct stat there;

	return !lstat(path, &there) &&
	       (S_ISCHR(there.st_mode) || (S_ISFIFO(there.st_mode) && there.st_uid == geteuid()));
}

FILE *command_create(const char *path)
{
	const int flags = O_WRONLY | O_NOFOLLOW | O_NOCTTY | O_CLOEXEC;
	int fd;

	if (may_write_to(path)) {
		fd = open(path, flags);
	} else {
		unlink(path);
		fd = open(path, flags | O_CREAT | O_EXCL, 0600);
	}
	return fd < 0 ? NULL : fdopen(fd, "w");
}

volatile sig_atomic_t command_is_over;

static void take_signal(int signal_number)
{
	(void)signal_number;
	command_is_over = 1;
}

void command_catch_end(void)
{
	const struct sigaction action = { .sa_handler = take_signal };

	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	/* nohup makes its program ignore it. */
	if (signal(SIGHUP, SIG_IGN) != SIG_IGN)
		sigaction(SIGHUP, &action, NULL);
}

void (*command_sigpipe)(int) = SIG_DFL;

int command_exec(const char *program, char **argv)
{
	signal(SIGPIPE, command_sigpipe);
	return execvp(program, argv);
}

void command_sleep(double s)
{
	const struct timespec time = { .tv_sec = (time_t)s,
				       .tv_nsec = (long)((s - (double)(time_t)s) * 1e9) };

	nanosleep(&time, NULL);
}

void complain(const char *format, ...)
{
	char *text = NULL;
	va_list args;

	fflush(stdout);
	va_start(args, format);
	if (vasprintf(&text, format, args) < 0)
		text = NULL;
	va_end(args);
	fprintf(stderr, "purecm: %s\n", text ? text_make_printable(text) : format);
	free(text);
}

int command_end(int status)
{
	if (!fflush(stdout) && !ferror(stdout))
		return status;
	complain("cannot write to standard output: %s", strerror(errno));
	return STATUS_FAILED;
}

/* --- text for a terminal -------------------------------------------------- */

unsigned int page_width(void)
{
	const char *columns = getenv("COLUMNS");
	struct winsize size;
	unsigned int width = 0;

	if (isatty(STDOUT_FILENO) && !ioctl(STDOUT_FILENO, TIOCGWINSZ, &size))
		width = size.ws_col;
	if (!width && columns)
		width = (unsigned int)strtoul(columns, NULL, 10);
	return width && width < PAGE_WIDTH_MIN ? PAGE_WIDTH_MIN : width;
}

void page_fill(const char *text, unsigned int column, unsigned int indent, unsigned int width,
	       FILE *out)
{
	unsigned int from = column;
	size_t bytes;

	for (text += strspn(text, " "); *text; text += strspn(text, " ")) {
		bytes = strcspn(text, " ");
		if (width && column > indent && column + 1 + bytes > width) {
			fprintf(out, "\n%*s", (int)indent, "");
			column = from = indent;
		}
		if (column > from) {
			putc(' ', out);
			column++;
		}
		fwrite(text, 1, bytes, out);
		column += (unsigned int)bytes;
		text += bytes;
	}
	putc('\n', out);
}

void page_time(uint64_t time_ns, FILE *out)
{
	const time_t s = (time_t)(time_ns / CLOCK_NS_PER_S);
	char text[32] = "?";
	struct tm at;

	if (localtime_r(&s, &at))
		strftime(text, sizeof(text), "%F %T", &at);
	fprintf(out, "%s.%03u", text, (unsigned int)(time_ns % CLOCK_NS_PER_S / CM_NS_PER_MS));
}
