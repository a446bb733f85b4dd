/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The border of the socket layer: what api.h is for the rest of the library, with a handle.
 */
#ifndef LIB_RSOCKET_CALLS_H
#define LIB_RSOCKET_CALLS_H

#include "lib/api.h"
#include "lib/rsocket/table.h"

/**
 * rsock_call() - evaluate a call with the handle of a descriptor, which is named rs in it
 *
 * Nothing is cancelled inside. Return: its result, or -1 with errno set: EBADF if the descriptor is
 * none of ours.
 */
#define rsock_call(socket, call)                                      \
	({                                                            \
		int rsock_cancel_state = api_enter();                 \
		struct rsock *rs = table_get(socket);                 \
		__typeof__(call) rsock_result = rs ? (call) : -EBADF; \
                                                                      \
		if (rs)                                               \
			rsock_put(rs);                                \
		api_leave(rsock_cancel_state);                        \
		if (rsock_result < 0) {                               \
			errno = (int)-rsock_result;                   \
			rsock_result = -1;                            \
		}                                                     \
		rsock_result;                                         \
	})

#endif
