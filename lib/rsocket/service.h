/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The service thread of the socket layer: one per process, which exists while anything is served.
 * It sets connections up, handles their end, sends keepalives and answers for datagram sockets.
 * Nothing that it calls may block.
 *
 * All callbacks run under the service's lock, one at a time. The lock nests outside every handle's.
 */
#ifndef LIB_RSOCKET_SERVICE_H
#define LIB_RSOCKET_SERVICE_H

#include "base/loop.h"
#include "base/timer.h"

struct serviced {
	void (*readable)(struct serviced *serviced); /* its descriptor is */
	void (*expired)(struct serviced *serviced);  /* its timer has */
	struct watch watch;			     /* fd -1: not served */
	struct cm_timer timer;
};

/** serviced_init() - not served yet; either callback may be NULL if it is never needed. */
void serviced_init(struct serviced *serviced, void (*readable)(struct serviced *serviced),
		   void (*expired)(struct serviced *serviced));

/** service_lock() - keep callbacks from running; not recursive, not in a callback. */
void service_lock(void);
void service_unlock(void);

/**
 * service_add() - serve a descriptor; the service's lock is held, as for the rest
 *
 * Starts the thread if there is none.
 *
 * Return: 0 or -errno.
 */
int service_add(struct serviced *serviced, int fd);

/** service_remove() - no callback comes any more; harmless if it is not served. */
void service_remove(struct serviced *serviced);

/** service_pause() - ignore the descriptor until service_resume(). */
void service_pause(struct serviced *serviced);
void service_resume(struct serviced *serviced);

/** service_expire_in() - call expired() once, in so many milliseconds; 0: not at all. */
void service_expire_in(struct serviced *serviced, uint32_t ms);

/** service_after_fork() - in a forked child: nothing is served, there is no thread. */
void service_after_fork(void);

#endif
