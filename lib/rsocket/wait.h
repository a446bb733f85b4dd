/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Waiting for handles. Completions come as events on a descriptor that several threads may watch,
 * and only one of them takes an event. What keeps the others from sleeping through it:
 *
 * - who wants to sleep has a watch on the handle first, then arms it and looks once more, all under
 *   the handle's lock, so that it never sleeps on one that is not armed;
 * - whatever disarms a handle, or changes it without a completion, tells every watch.
 *
 * Who was woken leaves the event on the descriptor until he or another sleeps again: what he waited
 * for is there, and taking an event is a system call that would come before it.
 *
 * A watch is told under the handle's lock and must not take another handle's.
 */
#ifndef LIB_RSOCKET_WAIT_H
#define LIB_RSOCKET_WAIT_H

#include <time.h>

#include "lib/rsocket/rsock.h"

struct watcher {
	struct list link;
	void (*changed)(struct watcher *watch);
};

/* Wakes one sleeping thread, from any number of watches. Reused: see waker_new(). */
struct waker {
	struct list spare;
	int fd;	    /* an eventfd */
	int is_set; /* atomic */
};

/* A watch of a thread that sleeps in poll(). */
struct sleeper {
	struct watcher watch; /* first */
	struct waker *waker;
};

/** watch_add() - be told of a handle's changes; the lock is held, as for the other two. */
void watch_add(struct rsock *rs, struct watcher *watch);
void watch_remove(struct watcher *watch);

/** watch_tell() - the handle has changed, or is no longer armed. */
void watch_tell(struct rsock *rs);

/** watch_disarm() - disarm a handle; only the watches of others are told; the lock is held. */
void watch_disarm(struct rsock *rs, struct watcher *own);

/** waker_new() - Return: a waker that is not set, for waker_free(); NULL with errno set. */
struct waker *waker_new(void);
void waker_free(struct waker *waker);

/** waker_reset() - before the handles are looked at and armed. */
void waker_reset(struct waker *waker);

/** sleeper_init() - a watch that sets a waker; to be given to watch_add(). */
void sleeper_init(struct sleeper *sleeper, struct waker *waker);

/* When to give up waiting, sampled once a call. */
struct wait_until {
	bool is_forever;
	struct timespec at; /* CLOCK_MONOTONIC */
};

/** wait_for_ms() - so many milliseconds from now; for ever if negative. */
struct wait_until wait_for_ms(int timeout_ms);

/** wait_left_ms() - for poll(); 0 when it is over, at most the wake-up interval of the settings. */
int wait_left_ms(const struct wait_until *until);

/** wait_is_over() - is the time up? */
bool wait_is_over(const struct wait_until *until);

/**
 * wait_until_ready() - wait until a condition of one handle holds
 * @rs:     unlocked
 * @wanted: the poll() event that the condition is about
 * @ready:  asked under the lock, after progress
 * @until:  when to give up
 *
 * Looks for as long as the settings' polling time before it sleeps, unless the last waits for this
 * handle were much longer.
 *
 * Return: 0; -EAGAIN when the time is up; -EBADF if the handle was closed; -EINTR; -errno if
 * there is no descriptor to sleep with.
 */
int wait_until_ready(struct rsock *rs, short wanted, bool (*ready)(struct rsock *rs),
		     const struct wait_until *until);

/** wait_after_fork() - the wakers of the parent are none of ours. */
void wait_after_fork(void);

#endif
