/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * PURECM_LOG is read once, before the first line. Each line is one write, so that lines of several
 * threads and processes do not mix.
 */
#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/env.h"
#include "base/text.h"

#define LINE_BYTES 1024
#define US_PER_S   1000000

enum level {
	LEVEL_SILENT,
	LEVEL_WARN,
	LEVEL_DEBUG,
};

static enum level level;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static const char *daemon_name; /* NULL in a program */
static int to_fd = STDERR_FILENO;

static void read_level(void)
{
	const char *value = env_get("PURECM_LOG");

	if (!value && !daemon_name) /* of a set-user-ID program, too */
		value = getenv("PURECM_LOG");
	if (!value || !*value)
		level = daemon_name ? LEVEL_WARN : LEVEL_SILENT;
	else if (strcmp(value, "debug") == 0)
		level = LEVEL_DEBUG;
	else
		level = strcmp(value, "off") == 0 ? LEVEL_SILENT : LEVEL_WARN;
}

static enum level level_wanted(void)
{
	pthread_once(&once, read_level);
	return level;
}

void log_as_daemon(const char *name)
{
	daemon_name = name;
}

void log_set_verbose(void)
{
	pthread_once(&once, read_level);
	level = LEVEL_DEBUG;
}

/* O_NOFOLLOW: a symbolic link could make root append to another file. */
int log_to_file(const char *path)
{
	int fd =
		open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY | O_NOFOLLOW, 0640);

	if (fd < 0)
		return -errno;
	if (to_fd != STDERR_FILENO)
		close(to_fd);
	to_fd = fd;
	return 0;
}

static int print_head(char line[LINE_BYTES], enum level of)
{
	unsigned long long us = clock_ns() / 1000, s = us / US_PER_S;

	us %= US_PER_S;
	if (!daemon_name)
		return snprintf(line, LINE_BYTES, "purecm[%d] %llu.%06llu %s", (int)getpid(), s, us,
				of == LEVEL_WARN ? "warn: " : "");
	if (of == LEVEL_WARN)
		return snprintf(line, LINE_BYTES, "%s: ", daemon_name);
	return snprintf(line, LINE_BYTES, "%s: %llu.%06llu ", daemon_name, s, us);
}

__attribute__((format(printf, 2, 0))) static void write_line(enum level of, const char *format,
							     va_list args)
{
	int n, m, err = errno;
	char line[LINE_BYTES];

	if (level_wanted() < of)
		return;
	n = print_head(line, of);
	m = vsnprintf(line + n, sizeof(line) - (size_t)n - 1, format, args);
	n += m < 0 ? 0 : m;
	if (n > LINE_BYTES - 2)
		n = LINE_BYTES - 2;
	line[n] = '\0';
	text_make_printable(line);
	line[n++] = '\n';
	if (write(to_fd, line, (size_t)n) < 0)
		errno = 0; /* there is nowhere to report it */
	errno = err;
}

bool log_is_debug(void)
{
	return level_wanted() == LEVEL_DEBUG;
}

void log_warn(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	write_line(LEVEL_WARN, format, args);
	va_end(args);
}

void log_debug(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	write_line(LEVEL_DEBUG, format, args);
	va_end(args);
}
