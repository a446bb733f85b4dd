/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * File descriptors whose owner marks a closed one as -1.
 */
#ifndef BASE_FD_H
#define BASE_FD_H

#include <errno.h>
#include <unistd.h>

/** fd_close() - close *@fd unless it is -1, and make it -1. */
static inline void fd_close(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

/** fd_give_up() - close one on which a call has just failed. Return: that call's -errno. */
static inline int fd_give_up(int fd)
{
	int err = errno;

	close(fd);
	return -err;
}

#endif
