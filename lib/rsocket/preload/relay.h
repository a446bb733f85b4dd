/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The thread of a process that copies between its rsockets and the unix sockets that replace their
 * numbers, and that serves the control sockets of forked children: see preload.h.
 */
#ifndef LIB_RSOCKET_PRELOAD_RELAY_H
#define LIB_RSOCKET_PRELOAD_RELAY_H

#include "base/list.h"
#include "lib/rsocket/preload/preload.h"

/* What the thread waits for. */
struct source {
	void (*ready)(struct source *source);
	void (*close)(struct source *source); /* in a forked child, which has the descriptors too */
	struct list link;
	bool is_over; /* freed by the thread when it has handled its events */
};

/** relay_lock() - protects the sources, and all sockets that are away, or are shared at a fork() */
void relay_lock(void);
void relay_unlock(void);

/**
 * relay_start() - begin to copy between a connected socket and the end that it gets
 *
 * The lock must be held, as for the others. Return: 0, or -1.
 */
int relay_start(struct sock *sock);

/** relay_watch() - let the thread wait for events of epoll. Return: 0, or -1. */
int relay_watch(struct source *source, int fd, uint32_t events);

/** relay_unwatch() - stop that; it is freed later, by the thread */
void relay_unwatch(struct source *source, int fd);

/** relay_close_all() - in a forked child: close and forget the parent's relays */
void relay_close_all(void);

#endif
