/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An instance of repoll, and its list of items that may have changed: repoll.c has the calls,
 * repoll_changed.c the list, which is appended to wherever a socket changes.
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
	struct repoll *owner;  /* for the watch */
	struct rsock *rs;      /* held; NULL: not ours */
	int fd;
	int sleep_fd; /* in the epoll set; -1: none; of a socket: its lock */
	struct epoll_event asked;
	bool is_spent; /* EPOLLONESHOT, and reported */
};

struct repoll {
	struct rsock base; /* first; fd: the epoll descriptor */
	struct hash items;
	unsigned int n_sleeping; /* threads that found nothing to report */
	bool is_full;		 /* other descriptors left no room for sockets */
	int wake_fd;
	pthread_mutex_t changed_lock;
	struct list changed;
	bool is_awake; /* wake_fd is set */
};

/** changed_mark() - an item is to be looked at; wake: by a sleeping thread, if there is one. */
void changed_mark(struct item *item, bool wake);
void changed_unmark(struct item *item);

/** changed_notify() - the watch of an item that is a socket; the socket's lock is held. */
void changed_notify(struct watcher *watch);

/** changed_wake() - wake sleeping threads. */
void changed_wake(struct repoll *repoll);

/** changed_clear_wake() - a thread is awake; the instance's lock is held, as for the rest. */
void changed_clear_wake(struct repoll *repoll);

/** changed_take() - move the whole list to another; later marks are for the next time. */
void changed_take(struct repoll *repoll, struct list *ret);

/** changed_take_first() - Return: the first of that other list, or NULL. */
struct item *changed_take_first(struct repoll *repoll, struct list *from);

/**
 * changed_put_back() - items that there was no room for come first the next time
 *
 * The wake-up for them is taken, so a sleeping thread is woken again.
 */
void changed_put_back(struct repoll *repoll, struct list *from);

#endif
