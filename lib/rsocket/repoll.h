/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An instance of repoll: see repoll.c.
 */
#ifndef LIB_RSOCKET_REPOLL_H
#define LIB_RSOCKET_REPOLL_H

#include <sys/epoll.h>

#include "base/hash.h"
#include "lib/rsocket/wait.h"

/* A descriptor that was added. */
struct item {
	struct watcher watch;
	struct hash_node node; /* by fd */
	struct list changed;   /* in the instance's list, or alone */
	struct repoll *owner;  /* for watch */
	struct rsock *rs;      /* held; NULL: not an rsocket */
	int fd;
	int sleep_fd; /* in the epoll set, or -1; protected by the socket's lock if there is one */
	struct epoll_event asked;
	uint32_t ready; /* events of another descriptor that the kernel reports only once */
	bool is_spent;	/* EPOLLONESHOT, and reported */
};

struct repoll {
	struct rsock base; /* first; fd: the epoll descriptor */
	struct hash items;
	unsigned int n_sleeping; /* threads sleeping in repoll_wait() */
	bool is_full;		 /* other descriptors left no room for sockets */
	struct waker waker;	 /* in the epoll set, without an item */
	pthread_mutex_t changed_lock;
	struct list changed; /* items that may have changed, oldest first */
};

#endif
