/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * File descriptors whose owner marks a closed one as -1.
 */
#ifndef BASE_FD_H
#define BASE_FD_H

#include <unistd.h>

/** fd_close() - close *@fd unless it is -1, and make it -1. */
static inline void fd_close(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

#endif
