/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * PURECM_LOG is read once, at the first line that could be written. A line is one write, so that
 * those of several threads and processes do not mix.
 */
#include "lib/diag/log.h"

#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define LINE_BYTES 1024

enum level {
	LEVEL_SILENT,
	LEVEL_WARN,
	LEVEL_DEBUG,
};

static enum level level;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void read_level(void)
{
	const char *value = getenv("PURECM_LOG");

	if (!value || !*value)
		level = LEVEL_SILENT;
	else if (strcmp(value, "debug") == 0)
		level = LEVEL_DEBUG;
	else
		level = LEVEL_WARN;
}

static enum level wanted(void)
{
	pthread_once(&once, read_level);
	return level;
}

__attribute__((format(printf, 2, 0))) static void write_line(const char *kind, const char *format,
							     va_list args)
{
	char line[LINE_BYTES];
	struct timespec now;
	int err = errno;
	int n, m;

	clock_gettime(CLOCK_MONOTONIC, &now);
	n = snprintf(line, sizeof(line), "purecm[%d] %ld.%06ld %s", (int)getpid(), (long)now.tv_sec,
		     now.tv_nsec / 1000, kind);
	m = vsnprintf(line + n, sizeof(line) - (size_t)n - 1, format, args);
	n += m < 0 ? 0 : m;
	if (n > LINE_BYTES - 2)
		n = LINE_BYTES - 2;
	line[n++] = '\n';
	if (write(STDERR_FILENO, line, (size_t)n) < 0)
		errno = 0; /* nowhere left to say so */
	errno = err;
}

bool log_is_debug(void)
{
	return wanted() == LEVEL_DEBUG;
}

void log_warn(const char *format, ...)
{
	va_list args;

	if (wanted() < LEVEL_WARN)
		return;
	va_start(args, format);
	write_line("warn: ", format, args);
	va_end(args);
}

void log_debug(const char *format, ...)
{
	va_list args;

	if (wanted() < LEVEL_DEBUG)
		return;
	va_start(args, format);
	write_line("", format, args);
	va_end(args);
}
