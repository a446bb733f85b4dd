/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The service thread of the socket layer: one for the process, there while anything is to be
 * served. It sets connections up, hears of their end, says keepalives and answers for datagram
 * sockets. Nothing that it calls may block.
 *
 * All callbacks run under the service's lock, one at a time. Who holds it may take a handle's lock,
 * not the other way round.
 */
#ifndef LIB_RSOCKET_SERVICE_H
#define LIB_RSOCKET_SERVICE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"

struct serviced {
	void (*readable)(struct serviced *serviced); /* its descriptor is */
	void (*expired)(struct serviced *serviced);  /* its time has come */
	int fd;					     /* -1: not served */
	bool paused;
	uint64_t at_ns; /* CLOCK_MONOTONIC; 0: never */
	struct list timed;
};

/** serviced_init() - not served yet; either callback may be NULL if it is never needed. */
void serviced_init(struct serviced *serviced, void (*readable)(struct serviced *serviced),
		   void (*expired)(struct serviced *serviced));

/** service_lock() - keep callbacks from running; once a thread, not in a callback. */
void service_lock(void);
void service_unlock(void);

/**
 * service_add() - serve a descriptor; the service's lock is held, as for the rest
 *
 * The first makes the thread.
 *
 * Return: 0 or -errno.
 */
int service_add(struct serviced *serviced, int fd);

/** service_remove() - no callback comes any more; harmless for what is not served. */
void service_remove(struct serviced *serviced);

/** service_pause() - do not look at the descriptor; service_resume() to go on. */
void service_pause(struct serviced *serviced);
void service_resume(struct serviced *serviced);

/** service_expire_in() - call expired() once, in so many milliseconds; 0: not at all. */
void service_expire_in(struct serviced *serviced, uint32_t ms);

/** service_after_fork() - in a forked child: nothing is served, there is no thread. */
void service_after_fork(void);

#endif
