/* SPDX-License-Identifier: BSD-2-Clause */
/* Common functions of subcommands: parsing of options, error messages, termination. */
#include "tools/purecm/command.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

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

void command_parse(const struct argp *argp, int argc, char **argv, unsigned int flags, void *ret)
{
	char usage_name[64];
	uint64_t secret;

	/* Without random numbers only whoever forges addresses makes us slow. */
	if (getrandom(&secret, sizeof(secret), GRND_NONBLOCK) == sizeof(secret))
		hash_set_secret(secret);

	/* argp uses argv[0] as the program's name in messages and in the usage line. */
	snprintf(usage_name, sizeof(usage_name), "purecm %s", argv[0]);
	argv[0] = usage_name;
	argp_err_exit_status = STATUS_USAGE;
	name_help(argc, argv, flags);
	argp_parse(argp, argc, argv, flags, NULL, ret);
}

uint32_t command_parse_pid(const char *text, struct argp_state *state)
{
	char *end;
	unsigned long pid = strtoul(text, &end, 10);

	if (*end || end == text || pid == 0 || pid > INT32_MAX)
		argp_error(state, "--pid: %s is no process id", text);
	return (uint32_t)pid;
}

double command_parse_seconds(const char *text, const char *option, double min, double max,
			     struct argp_state *state)
{
	char *end;
	double s = strtod(text, &end);

	if (*end || end == text || !(s >= min && s <= max))
		argp_error(state, "%s: %s is no number of seconds from %g to %g", option, text, min,
			   max);
	return s;
}

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
