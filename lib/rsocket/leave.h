/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What is sent when a stream socket is shut down or closed. Most peers acknowledge it at once; the
 * service thread waits for the others, as the kernel does for TCP, so that a peer that is stopped
 * delays no program.
 */
#ifndef LIB_RSOCKET_LEAVE_H
#define LIB_RSOCKET_LEAVE_H

#include "lib/rsocket/stream.h"

#define LEAVE_MS 30000 /* without any acknowledgement: timeout for a peer that is gone */

/** leave_init() - initialize without anything to wait for */
void leave_init(struct stream *s);

/**
 * leave_begin() - wait for a moment until all is sent, and leave the rest to the service thread
 * @linger_ms: wait so long and give the rest up; negative: see above
 *
 * No lock may be held. Return: 0; -ETIMEDOUT if the rest was given up; -errno.
 */
int leave_begin(struct stream *s, int linger_ms);

/** leave_all() - begin to leave as in rclose(), by all streams that no call has locked */
void leave_all(void);

/** leave_is_over() - return whether the service has nothing to wait for; with the service's lock */
static inline bool leave_is_over(const struct stream *s)
{
	return s->leave.watch.fd < 0;
}

/** leave_after_fork() - in a forked child: forget the sockets that the parent waits for */
void leave_after_fork(void);

#endif
