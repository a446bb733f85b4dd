/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where errors leave the library: inside 0 or a negative errno, outside -1 and errno.
 */
#ifndef LIB_API_H
#define LIB_API_H

#include <errno.h>

/** api_return() - 0 or more as it is; -errno as -1 with errno set. */
static inline int api_return(int err)
{
	if (err >= 0)
		return err;
	errno = -err;
	return -1;
}

#endif
