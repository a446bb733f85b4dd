/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An instance of repoll, and its list of what may have changed: repoll.c has the calls, and
 * repoll_changed.c the list, which anyone may append to who changes a socket.
 */
#ifndef LIB_RSOCKET_REPOLL_H
#define LIB_RSOCKET_REPOLL_H

#include <sys/epoll.h>

#include "lib/rsocket/wait.h"

/* A descriptor that was added. */
struct item {
	struct watcher watch;
	struct list all;      /* in its bucket */
	struct list changed;  /* in the instance's list, or alone */
	struct repoll *owner; /* for the watch */
	struct rsock *rs;     /* held; NULL: none of ours */
	int fd;
	int sleep_fd; /* in the epoll descriptor; -1: none; of a socket: its lock */
	struct epoll_event asked;
	bool is_spent; /* EPOLLONESHOT, and was reported */
};

struct repoll {
	struct rsock base; /* first; fd: the epoll descriptor */
	struct list *bucket;
	size_t n_buckets;
	size_t n_items;
	unsigned int n_sleeping; /* threads that found nothing to report */
	bool is_full;		 /* other descriptors left no room for sockets */
	int wake_fd;
	pthread_mutex_t changed_lock;
	struct list changed;
	bool is_awake; /* wake_fd is set */
};

/** changed_mark() - an item is to be looked at; wake: by who sleeps, too. */
void changed_mark(struct item *item, bool wake);
void changed_unmark(struct item *item);

/** changed_tell() - the watch of an item that is a socket; the socket's lock is held. */
void changed_tell(struct watcher *watch);

/** changed_wake() - wake who sleeps. */
void changed_wake(struct repoll *repoll);

/** changed_clear_wake() - the wake-up was seen; the instance's lock is held, as for the rest. */
void changed_clear_wake(struct repoll *repoll);

/** changed_take() - all that is in the list goes to another; later marks are for the next time. */
void changed_take(struct repoll *repoll, struct list *ret);

/** changed_take_first() - Return: the first of that other list, or NULL. */
struct item *changed_take_first(struct repoll *repoll, struct list *from);

/**
 * changed_put_back() - what there was no room for is looked at first the next time
 *
 * By whoever comes: the wake-up for it is taken, and who slept through that is woken again.
 */
void changed_put_back(struct repoll *repoll, struct list *from);

#endif
