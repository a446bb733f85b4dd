/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * librspreload.so: calls that close or duplicate descriptors. See preload.h.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lib/rsocket/preload/preload.h"

int closing_forget(int fd)
{
	if (fd >= 0 && map_get(fd) && !own_is_lent())
		map_forget(fd);
	return fd;
}

/* Descriptors of the libraries are closed by the libraries only. */
static int close_for(const void *caller, int fd)
{
	if (own_has(fd) && !own_is_inside(caller)) {
		errno = EBADF;
		return -1;
	}
	return own_close(closing_forget(fd));
}

EXPORT int close(int fd)
{
	return close_for(__builtin_return_address(0), fd);
}

/* Closes the descriptors between those of the libraries. */
static int close_between(unsigned int first, unsigned int last, int flags)
{
	unsigned int end = last < MAP_FD_MAX ? last : MAP_FD_MAX;

	for (unsigned int fd = first; fd <= end; fd++)
		closing_forget((int)fd);
	for (unsigned int fd = first; fd <= end; fd++) {
		if (!own_has((int)fd))
			continue;
		if (first < fd && real()->close_range(first, fd - 1, flags))
			return -1;
		first = fd + 1;
	}
	return first > last ? 0 : real()->close_range(first, last, flags);
}

static int close_range_for(const void *caller, unsigned int first, unsigned int last, int flags)
{
	if (first > last || flags & CLOSE_RANGE_CLOEXEC || own_is_inside(caller))
		return real()->close_range(first, last, flags);
	return close_between(first, last, flags);
}

EXPORT int close_range(unsigned int first, unsigned int last, int flags)
{
	return close_range_for(__builtin_return_address(0), first, last, flags);
}

EXPORT void closefrom(int first)
{
	close_range_for(__builtin_return_address(0), first > 0 ? (unsigned int)first : 0, ~0U, 0);
}

/* --- duplicating ---------------------------------------------------------- */

int closing_alias(int from, int to)
{
	struct sock *sock = map_check(from) ?: map_get(from);

	if (closing_forget(to) < 0 || own_is_lent())
		return to;
	return sock && map_alias(to, sock) ? -1 : to;
}

/*
 * A child that shares this memory, such as the one that starts cmportd, has a descriptor table of
 * its own; the map describes the parent's.
 */
static struct sock *find_socket(int fd)
{
	return own_is_lent() ? NULL : map_socket(fd);
}

EXPORT int dup(int fd)
{
	find_socket(fd);
	return closing_alias(fd, real()->dup(fd));
}

static bool may_replace(int to)
{
	if (own_has(to))
		errno = EBUSY;
	return !own_has(to);
}

/* The C library's own streams use the standard numbers without a function of ours. */
static void prepare_alias(int from, int to)
{
	if (find_socket(from) && from != to && to >= STDIN_FILENO && to <= STDERR_FILENO)
		relay_give(from);
}

/* dup2() has closed the old descriptor only if it succeeded. */
EXPORT int dup2(int from, int to)
{
	int result;

	prepare_alias(from, to);
	result = may_replace(to) ? real()->dup2(from, to) : -1;
	return from == to ? result : closing_alias(from, result);
}

EXPORT int dup3(int from, int to, int flags)
{
	prepare_alias(from, to);
	return closing_alias(from, may_replace(to) ? real()->dup3(from, to, flags) : -1);
}

/* --- syscall() ------------------------------------------------------------ */

/* Some programs close like this, so that no thread is cancelled. */
EXPORT long syscall(long number, ...)
{
	enum {
		N_ARGS = 6
	};
	const void *caller = __builtin_return_address(0);
	long arg[N_ARGS];
	va_list args;

	va_start(args, number);
	for (int i = 0; i < N_ARGS; i++)
		arg[i] = va_arg(args, long);
	va_end(args);
	if (number == SYS_close)
		return close_for(caller, (int)arg[0]);
	if (number == SYS_close_range)
		return close_range_for(caller, (unsigned int)arg[0], (unsigned int)arg[1],
				       (int)arg[2]);
	if (number == SYS_dup3)
		return dup3((int)arg[0], (int)arg[1], (int)arg[2]);
#ifdef SYS_dup2
	if (number == SYS_dup2)
		return dup2((int)arg[0], (int)arg[1]);
#endif
	return real()->syscall(number, arg[0], arg[1], arg[2], arg[3], arg[4], arg[5]);
}
