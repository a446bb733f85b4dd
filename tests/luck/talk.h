/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A whole conversation between two ids of one process, over an address of this host: listen,
 * resolve, connect, accept, join and leave a group, disconnect, destroy; the same with a datagram
 * service, and with endpoints that are moved to the channel. Called by the programs that take
 * something away in the middle of it.
 */
#ifndef LUCK_TALK_H
#define LUCK_TALK_H

#include <stdbool.h>

#include <rdma/rdma_cma.h>

/* How it ended. Whatever it is, everything that was made is destroyed again. */
struct outcome {
	const char
		*what;	/* the call that failed, or the event that should not have come; or NULL */
	int err;	/* errno, or the event's status */
	bool is_silent; /* nothing came where something should have */
};

/**
 * talk() - hold one conversation
 * @addr: numeric address of this host
 * @port: to listen on
 * @wait_ms: for each event, before the conversation is called silent
 */
struct outcome talk(const char *addr, const char *port, int wait_ms);

/** count_fds() - how many descriptors this process has. */
int count_fds(void);

#endif
