/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A line is one write, so that several cmportds can share a file. There is one thread: PURECM_LOG
 * is read at the first line that could be written.
 */
#include "lib/portd/server/log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define LINE_BYTES 1024

enum level {
	LEVEL_UNKNOWN,
	LEVEL_OFF,
	LEVEL_WARN,
	LEVEL_DEBUG,
};

static enum level level;
static int to_fd = STDERR_FILENO;

/* Of the program that the server is a thread of, or NULL. */
static bool (*program_is_debug)(void);
static void (*program_warn)(const char *format, ...);
static void (*program_debug)(const char *format, ...);

static enum level wanted(void)
{
	const char *value;

	if (level == LEVEL_UNKNOWN) {
		value = secure_getenv("PURECM_LOG");
		level = LEVEL_WARN;
		if (value && strcmp(value, "off") == 0)
			level = LEVEL_OFF;
		else if (value && strcmp(value, "debug") == 0)
			level = LEVEL_DEBUG;
	}
	return level;
}

void portd_log_set_verbose(void)
{
	level = LEVEL_DEBUG;
}

/* A link could be another's, and the file it names root's. */
int portd_log_to_file(const char *path)
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

void portd_log_through(bool (*is_debug)(void), void (*warn)(const char *format, ...),
		       void (*debug)(const char *format, ...))
{
	program_is_debug = is_debug;
	program_warn = warn;
	program_debug = debug;
}

bool portd_log_is_debug(void)
{
	return program_is_debug ? program_is_debug() : wanted() == LEVEL_DEBUG;
}

/* An unprintable byte, of a device's or a program's name, must not play tricks on a terminal. */
static void make_printable(char *text, int n)
{
	int i;

	for (i = 0; i < n; i++)
		if ((unsigned char)text[i] < ' ' || text[i] == 0x7f)
			text[i] = '?';
}

/* Return: how many bytes, with room for one more. */
__attribute__((format(printf, 3, 0))) static int make_line(char line[LINE_BYTES], const char *head,
							   const char *format, va_list args)
{
	int n = snprintf(line, LINE_BYTES, "%s", head);
	int m = vsnprintf(line + n, LINE_BYTES - (size_t)n - 1, format, args);

	n += m < 0 ? 0 : m;
	if (n > LINE_BYTES - 2)
		n = LINE_BYTES - 2;
	make_printable(line, n);
	return n;
}

static void write_line(char line[LINE_BYTES], int n)
{
	int err = errno;

	line[n++] = '\n';
	if (write(to_fd, line, (size_t)n) < 0)
		errno = 0; /* nowhere left to say so */
	errno = err;
}

__attribute__((format(printf, 2, 0))) static void tell_program(void (*say)(const char *format, ...),
							       const char *format, va_list args)
{
	char line[LINE_BYTES];
	int n = make_line(line, "", format, args);

	line[n] = '\0';
	say("%s", line);
}

void portd_log_warn(const char *format, ...)
{
	char line[LINE_BYTES];
	va_list args;

	va_start(args, format);
	if (program_warn)
		tell_program(program_warn, format, args);
	else if (wanted() >= LEVEL_WARN)
		write_line(line, make_line(line, "cmportd: ", format, args));
	va_end(args);
}

void portd_log_debug(const char *format, ...)
{
	char head[48], line[LINE_BYTES];
	struct timespec now;
	va_list args;

	if (!portd_log_is_debug())
		return;
	va_start(args, format);
	if (program_debug) {
		tell_program(program_debug, format, args);
	} else {
		clock_gettime(CLOCK_MONOTONIC, &now);
		snprintf(head, sizeof(head), "cmportd: %lld.%06ld ", (long long)now.tv_sec,
			 now.tv_nsec / 1000);
		write_line(line, make_line(line, head, format, args));
	}
	va_end(args);
}
