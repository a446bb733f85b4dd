/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The service thread of the socket layer: one per process, which runs while anything is served. It
 * sets up connections, handles their end, sends keepalives and responds for datagram sockets.
 * Nothing that it calls may block for a peer; such steps are for service_work().
 *
 * All callbacks run under the service's lock, one at a time. The lock nests outside every handle's.
 */
#ifndef LIB_RSOCKET_SERVICE_THREAD_H
#define LIB_RSOCKET_SERVICE_THREAD_H

#include "base/list.h"
#include "base/loop.h"
#include "base/timer.h"

struct serviced {
	void (*readable)(struct serviced *serviced); /* the descriptor is readable */
	void (*expired)(struct serviced *serviced);  /* the timer has expired */
	struct watch watch;			     /* fd -1: not served */
	struct cm_timer timer;
};

/* A step that may wait for the device or the kernel. */
struct work {
	struct list link;
	void (*run)(struct work *work); /* without the lock */
};

/** serviced_init() - initialize without serving; a callback that is never needed may be NULL */
void serviced_init(struct serviced *serviced, void (*readable)(struct serviced *serviced),
		   void (*expired)(struct serviced *serviced));

/** service_lock() - keep callbacks from running; not recursive, not for use in callbacks */
void service_lock(void);
void service_unlock(void);

/**
 * service_add() - serve a descriptor; the service's lock must be held, as for the functions below
 */
int service_add(struct serviced *serviced, int fd);

/** service_remove() - stop callbacks; allowed if not served */
void service_remove(struct serviced *serviced);

/** service_pause() - ignore the descriptor until service_resume() */
void service_pause(struct serviced *serviced);
void service_resume(struct serviced *serviced);

/** service_expire_in() - call expired() once, after @ms milliseconds; 0 cancels */
void service_expire_in(struct serviced *serviced, uint32_t ms);

/**
 * service_work() - run a step soon, in the order of these calls, several at a time
 *
 * Without a thread for it the service's own runs it. For use in callbacks only.
 */
void service_work(struct work *work);

/** service_after_fork() - in a forked child: reset the service, without a thread */
void service_after_fork(void);

#endif
