/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The border of the socket layer: as api.h, with a handle.
 */
#ifndef LIB_RSOCKET_CALLS_H
#define LIB_RSOCKET_CALLS_H

#include "lib/api.h"
#include "lib/rsocket/table.h"

/**
 * rsock_with() - evaluate a call with the handle of a descriptor, which is named rs in it
 *
 * The call itself disables cancellation where it waits. Return: its result, or -1 with errno set:
 * EBADF if the descriptor is not ours.
 */
#define rsock_with(socket, call)                                      \
	({                                                            \
		struct rsock *rs = table_get(socket);                 \
		__typeof__(call) rsock_result = rs ? (call) : -EBADF; \
                                                                      \
		if (rs)                                               \
			rsock_put(rs);                                \
		if (rsock_result < 0) {                               \
			errno = (int)-rsock_result;                   \
			rsock_result = -1;                            \
		}                                                     \
		rsock_result;                                         \
	})

/** rsock_call() - the same, with cancellation disabled. */
#define rsock_call(socket, call)                                       \
	({                                                             \
		int rsock_cancel_state = api_enter();                  \
		__auto_type rsock_returned = rsock_with(socket, call); \
                                                                       \
		api_leave(rsock_cancel_state);                         \
		rsock_returned;                                        \
	})

#endif
