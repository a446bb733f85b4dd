/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * librspreload.so: calls that close or duplicate descriptors. See preload.h.
 */
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lib/rsocket/preload/preload.h"

int closing_forget(int fd)
{
	if (fd >= 0 && (map_get(fd) || fork_has(fd)) && !map_is_lent()) {
		map_forget(fd);
		fork_forget(fd);
	}
	return fd;
}

EXPORT int close(int fd)
{
	return real()->close(closing_forget(fd));
}

EXPORT int close_range(unsigned int first, unsigned int last, int flags)
{
	unsigned int end = last < MAP_FD_MAX ? last : MAP_FD_MAX;

	for (unsigned int fd = first; fd <= end && !(flags & CLOSE_RANGE_CLOEXEC); fd++)
		closing_forget((int)fd);
	return real()->close_range(first, last, flags);
}

EXPORT void closefrom(int first)
{
	close_range(first > 0 ? (unsigned int)first : 0, ~0U, 0);
}

/* --- duplicates ----------------------------------------------------------- */

int closing_alias(int from, int to)
{
	struct sock *sock = map_check(from);

	if (closing_forget(to) < 0 || map_is_lent())
		return to;
	if (!sock)
		fork_alias(from, to);
	else if (map_alias(to, sock))
		return -1;
	return to;
}

EXPORT int dup(int fd)
{
	return closing_alias(fd, real()->dup(fd));
}

/* dup2() has closed the old descriptor only if it succeeded. */
EXPORT int dup2(int from, int to)
{
	int result = real()->dup2(from, to);

	return from == to ? result : closing_alias(from, result);
}

EXPORT int dup3(int from, int to, int flags)
{
	return closing_alias(from, real()->dup3(from, to, flags));
}

/* --- syscall() ------------------------------------------------------------ */

/* Some programs close like this, so that no thread is cancelled. */
EXPORT long syscall(long number, ...)
{
	enum {
		N_ARGS = 6
	};
	long arg[N_ARGS];
	va_list args;

	va_start(args, number);
	for (int i = 0; i < N_ARGS; i++)
		arg[i] = va_arg(args, long);
	va_end(args);
	if (number == SYS_close)
		return close((int)arg[0]);
	if (number == SYS_close_range)
		return close_range((unsigned int)arg[0], (unsigned int)arg[1], (int)arg[2]);
	if (number == SYS_dup3)
		return dup3((int)arg[0], (int)arg[1], (int)arg[2]);
#ifdef SYS_dup2
	if (number == SYS_dup2)
		return dup2((int)arg[0], (int)arg[1]);
#endif
	return real()->syscall(number, arg[0], arg[1], arg[2], arg[3], arg[4], arg[5]);
}
