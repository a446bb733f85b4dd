/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Waiting for handles. Completions come as events on a descriptor that several threads may watch,
 * and only one of them takes an event. Two rules prevent lost wakeups:
 *
 * - before it sleeps, a thread adds a watch to the handle, arms the handle and looks once more, all
 *   under the handle's lock, so that it never sleeps on a handle that is not armed;
 * - whatever disarms a handle, or changes it without a completion, notifies every watch.
 *
 * A thread that was woken leaves the event on the descriptor until the next sleep: what it waited
 * for is there, and taking the event would cost a system call first.
 *
 * A watch is notified under the handle's lock and must not take another handle's.
 */
#ifndef LIB_RSOCKET_WAIT_H
#define LIB_RSOCKET_WAIT_H

#include "base/clock.h"
#include "lib/rsocket/rsock.h"

struct watcher {
	struct list link;
	void (*changed)(struct watcher *watch);
};

/* Wakes a thread that sleeps on its descriptor, from anywhere. */
struct waker {
	struct list spare; /* of waker_new() */
	int fd;		   /* an eventfd */
	int is_set;	   /* atomic */
};

/* A watch of a thread that sleeps in poll(). */
struct sleeper {
	struct watcher watch; /* first */
	struct waker *waker;
};

/** watch_add() - get notified of a handle's changes; the lock is held, as for the other two. */
void watch_add(struct rsock *rs, struct watcher *watch);
void watch_remove(struct watcher *watch);

/** watch_notify() - the handle has changed, or is no longer armed. */
void watch_notify(struct rsock *rs);

/** watch_disarm() - disarm a handle; only other watches are notified; the lock is held. */
void watch_disarm(struct rsock *rs, struct watcher *own);

/** waker_open() - not set; for waker_close(). Return: 0 or -errno; its descriptor is then -1. */
int waker_open(struct waker *waker);
void waker_close(struct waker *waker);

/** waker_new() - from a pool. Return: a waker that is not set, for waker_free(); NULL: errno. */
struct waker *waker_new(void);
void waker_free(struct waker *waker);

/** waker_set() - its descriptor is readable from now on, until waker_reset(); any thread. */
void waker_set(struct waker *waker);

/** waker_reset() - to be called before what it wakes for is looked at; one thread at a time. */
void waker_reset(struct waker *waker);

/** sleeper_init() - a watch that sets a waker; for watch_add(). */
void sleeper_init(struct sleeper *sleeper, struct waker *waker);

/** wait_deadline() - so many milliseconds from now; CM_TIME_NEVER if negative. */
static inline struct cm_time wait_deadline(int timeout_ms)
{
	if (timeout_ms < 0)
		return CM_TIME_NEVER;
	return cm_time_after(clock_now(), (uint64_t)timeout_ms * CM_NS_PER_MS);
}

/** wait_left_ms() - for poll(): until the deadline, at most the settings' wake-up interval. */
int wait_left_ms(struct cm_time deadline);

/** wait_is_over() - has the deadline passed? */
bool wait_is_over(struct cm_time deadline);

/**
 * wait_until_ready() - wait until a condition of one handle holds
 * @rs:     unlocked
 * @wanted: the poll() event that the condition is about
 * @ready:  called under the lock, after progress
 *
 * Polls the device for the settings' polling time before it sleeps, unless the last waits for this
 * handle took much longer.
 *
 * Return: 0; -EAGAIN at the deadline; -EBADF if the handle was closed; -EINTR; -errno if there is
 * no descriptor to sleep with.
 */
int wait_until_ready(struct rsock *rs, short wanted, bool (*ready)(struct rsock *rs),
		     struct cm_time deadline);

/** wait_after_fork() - in a forked child: the parent's wakers are not ours. */
void wait_after_fork(void);

#endif
