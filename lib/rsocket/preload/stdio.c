/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * librspreload.so: stdio on sockets. The C library's streams make system calls internally; the
 * stream of a socket consists of functions that call this library's. See preload.h.
 */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "lib/rsocket/preload/preload.h"

static int fd_of(const void *cookie)
{
	return (int)(intptr_t)cookie;
}

static ssize_t read_socket(void *cookie, char *buf, size_t bytes)
{
	return read(fd_of(cookie), buf, bytes);
}

/* Return: the number of bytes, less after an error. */
static ssize_t write_all(void *cookie, const char *buf, size_t bytes)
{
	size_t sent = 0;

	while (sent < bytes) {
		ssize_t n = write(fd_of(cookie), buf + sent, bytes - sent);

		if (n <= 0)
			break;
		sent += (size_t)n;
	}
	return (ssize_t)sent;
}

static int close_socket(void *cookie)
{
	return close(fd_of(cookie));
}

EXPORT FILE *fdopen(int fd, const char *mode)
{
	static const cookie_io_functions_t functions = {
		.read = read_socket,
		.write = write_all,
		.close = close_socket,
	};
	FILE *stream;

	if (!map_check(fd))
		return real()->fdopen(fd, mode);
	stream = fopencookie((void *)(intptr_t)fd, mode, functions);
	if (stream)
		stream->_fileno = fd; /* for fileno() */
	return stream;
}

/* The C library's would crash on a stream of ours; this one calls read() and write() of a file. */
static FILE *reopen_ours(const char *path, const char *mode, FILE *stream)
{
	FILE *file = path ? fopen(path, mode) : NULL;
	int fd = fileno(stream);

	fflush(stream);
	if (!file || dup2(fileno(file), fd) < 0)
		close(fd);
	if (file)
		fclose(file);
	return file ? stream : NULL;
}

EXPORT FILE *freopen(const char *path, const char *mode, FILE *stream)
{
	bool is_cookie = (intptr_t)stream->_wide_data == -1 || !stream->_wide_data;

	if (is_cookie && map_check(fileno(stream)))
		return reopen_ours(path, mode, stream);
	return real()->freopen(path, mode, stream);
}

EXPORT FILE *freopen64(const char *path, const char *mode, FILE *stream)
	__attribute__((alias("freopen")));

/* --- dprintf() ------------------------------------------------------------ */

/* Not declared in any header. */
int __dprintf_chk(int fd, int flag, const char *format, ...);
int __vdprintf_chk(int fd, int flag, const char *format, va_list args);

EXPORT int vdprintf(int fd, const char *format, va_list args)
{
	char *text;
	int n;

	if (!map_check(fd))
		return real()->vdprintf(fd, format, args);
	n = vasprintf(&text, format, args);
	if (n < 0)
		return -1;
	if (write_all((void *)(intptr_t)fd, text, (size_t)n) < n)
		n = -1;
	free(text);
	return n;
}

EXPORT int dprintf(int fd, const char *format, ...)
{
	va_list args;
	int n;

	va_start(args, format);
	n = vdprintf(fd, format, args);
	va_end(args);
	return n;
}

__attribute__((format(printf, 3, 0))) EXPORT int __vdprintf_chk(int fd, int flag,
								const char *format, va_list args)
{
	(void)flag;
	return vdprintf(fd, format, args);
}

__attribute__((format(printf, 3, 4))) EXPORT int __dprintf_chk(int fd, int flag, const char *format,
							       ...)
{
	va_list args;
	int n;

	va_start(args, format);
	n = __vdprintf_chk(fd, flag, format, args);
	va_end(args);
	return n;
}
