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

bool portd_log_is_debug(void)
{
	return wanted() == LEVEL_DEBUG;
}

/* An unprintable byte, of a device's or a program's name, must not play tricks on a terminal. */
static void make_printable(char *text, int n)
{
	int i;

	for (i = 0; i < n; i++)
		if ((unsigned char)text[i] < ' ' || text[i] == 0x7f)
			text[i] = '?';
}

__attribute__((format(printf, 2, 0))) static void write_line(const char *head, const char *format,
							     va_list args)
{
	char line[LINE_BYTES];
	int err = errno;
	int n, m;

	n = snprintf(line, sizeof(line), "cmportd: %s", head);
	m = vsnprintf(line + n, sizeof(line) - (size_t)n - 1, format, args);
	n += m < 0 ? 0 : m;
	if (n > LINE_BYTES - 2)
		n = LINE_BYTES - 2;
	make_printable(line, n);
	line[n++] = '\n';
	if (write(to_fd, line, (size_t)n) < 0)
		errno = 0; /* nowhere left to say so */
	errno = err;
}

void portd_log_warn(const char *format, ...)
{
	va_list args;

	if (wanted() < LEVEL_WARN)
		return;
	va_start(args, format);
	write_line("", format, args);
	va_end(args);
}

void portd_log_debug(const char *format, ...)
{
	char time[32];
	struct timespec now;
	va_list args;

	if (!portd_log_is_debug())
		return;
	clock_gettime(CLOCK_MONOTONIC, &now);
	snprintf(time, sizeof(time), "%lld.%06ld ", (long long)now.tv_sec, now.tv_nsec / 1000);
	va_start(args, format);
	write_line(time, format, args);
	va_end(args);
}
