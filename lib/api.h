/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The border of the library. Inside, errors are 0 or a negative errno and no thread is cancelled,
 * as it may hold a lock; outside they are -1 and errno. Only rdma_get_cm_event() and
 * rdma_getaddrinfo() can be cancelled, and only where they wait for others.
 */
#ifndef LIB_API_H
#define LIB_API_H

#include <errno.h>
#include <pthread.h>

/** api_enter() - put off cancellation. Return: what api_leave() is to restore. */
static inline int api_enter(void)
{
	int cancel_state;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
	return cancel_state;
}

static inline void api_leave(int cancel_state)
{
	pthread_setcancelstate(cancel_state, NULL);
}

/** api_result() - 0 or more as it is; -errno as -1 with errno set. */
static inline int api_result(int err)
{
	if (err >= 0)
		return err;
	errno = -err;
	return -1;
}

/** api_return() - convert the 0 or -errno of an internal call to 0 or -1 and errno. */
#define api_return(call)                            \
	({                                          \
		int api_cancel_state = api_enter(); \
		int api_err = (call);               \
                                                    \
		api_leave(api_cancel_state);        \
		api_result(api_err);                \
	})

#endif
