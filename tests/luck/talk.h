/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A whole conversation between two ids of one process, over an address of this host: listen,
 * resolve, connect, accept, join and leave a group, disconnect, destroy; the same with a datagram
 * service, and with endpoints that are moved to the channel. Used by programs that limit resources
 * during it.
 */
#ifndef LUCK_TALK_H
#define LUCK_TALK_H

#include <stdbool.h>

#include <rdma/rdma_cma.h>

/* How it ended. In any case, all objects are destroyed. */
struct outcome {
	const char *what; /* the call that failed, or the unexpected event; or NULL */
	int err;	  /* errno, or the event's status */
	bool is_silent;	  /* an expected event did not come */
};

/**
 * talk() - hold one conversation
 * @addr: numeric address of this host
 * @port: to listen on
 * @wait_ms: for each event, before the conversation is considered stuck
 */
struct outcome talk(const char *addr, const char *port, int wait_ms);

/** count_fds() - the number of descriptors of this process. */
int count_fds(void);

#endif
