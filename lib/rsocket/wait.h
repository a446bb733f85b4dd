/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Waiting for handles. Completions arrive as events on a descriptor that several threads may poll,
 * and only one of them reads an event. Two rules prevent lost wakeups:
 *
 * - before it sleeps, a thread adds a watch to the handle, arms the handle and checks once more,
 * all under the handle's lock, so that it never sleeps on a handle that is not armed;
 * - code that disarms a handle, or changes it without a completion, notifies every watch.
 *
 * A thread that was woken up leaves the event on the descriptor until the next sleep: its condition
 * holds, and reading the event would cost a system call first.
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

/* Wakes up a thread that sleeps on its descriptor; callable from any context. */
struct waker {
	struct list spare; /* in the pool of waker_new() */
	int fd;		   /* an eventfd */
	int is_set;	   /* atomic */
};

/* The watch of a thread that sleeps in poll(). */
struct sleeper {
	struct watcher watch; /* first */
	struct waker *waker;
};

/** watch_add() - be notified of a handle's changes; the lock must be held, as for the other two */
void watch_add(struct rsock *rs, struct watcher *watch);
void watch_remove(struct watcher *watch);

/** watch_notify() - notify watches of a changed or disarmed handle */
void watch_notify(struct rsock *rs);

/** watch_disarm() - disarm a handle, notifying all other watches; the lock must be held */
void watch_disarm(struct rsock *rs, struct watcher *own);

/**
 * waker_open() - create an unset waker, for waker_close(). Return: 0 or -errno, with descriptor -1.
 */
int waker_open(struct waker *waker);
void waker_close(struct waker *waker);

/** waker_new() - take an unset waker from a pool, for waker_free(). Return: NULL with errno set. */
struct waker *waker_new(void);
void waker_free(struct waker *waker);

/** waker_set() - make the descriptor readable until waker_reset(); any thread */
void waker_set(struct waker *waker);

/** waker_reset() - to be called before checking the condition; one thread at a time */
void waker_reset(struct waker *waker);

/** waker_await() - sleep until a waker is set, and reset it. Return: 0; -EINTR, as of read() */
int waker_await(struct waker *waker);

/** sleeper_init() - a watch that sets a waker; for watch_add(). */
void sleeper_init(struct sleeper *sleeper, struct waker *waker);

/** wait_deadline() - the deadline in @timeout_ms milliseconds; CM_TIME_NEVER if negative */
static inline struct cm_time wait_deadline(int timeout_ms)
{
	if (timeout_ms < 0)
		return CM_TIME_NEVER;
	return cm_time_after(clock_now(), (uint64_t)timeout_ms * CM_NS_PER_MS);
}

/**
 * wait_deadline_of() - the deadline of SO_RCVTIMEO or SO_SNDTIMEO; CM_TIME_NEVER for 0 and for what
 * is no time of a few decades
 */
static inline struct cm_time wait_deadline_of(const struct timeval *timeout)
{
	uint64_t us = (uint64_t)timeout->tv_sec * 1000000 + (uint64_t)timeout->tv_usec;

	if (!us || timeout->tv_sec < 0 || timeout->tv_sec > INT32_MAX)
		return CM_TIME_NEVER;
	return cm_time_after(clock_now(), us * 1000);
}

/** wait_left_ms() - the timeout for poll(), limited to the wake-up interval of the settings */
int wait_left_ms(struct cm_time deadline);

/** wait_is_over() - return whether the deadline has passed */
bool wait_is_over(struct cm_time deadline);

/**
 * wait_until_ready() - wait until a condition of one handle holds
 * @rs:     not locked
 * @wanted: the poll() event of the condition
 * @ready:  checks the condition, under the lock, after progress
 *
 * Polls the device for the settings' polling time before it sleeps, unless the latest waits for
 * this handle took much longer.
 *
 * Return: 0; -EAGAIN at the deadline; -EBADF if the handle was closed; -EINTR; -errno if there is
 * no descriptor to sleep on.
 */
int wait_until_ready(struct rsock *rs, short wanted, bool (*ready)(struct rsock *rs),
		     struct cm_time deadline);

/**
 * wait_restarted() - wait_until_ready() where stock librdmacm sleeps in a read()
 *
 * Without a deadline it goes on after a signal handler with SA_RESTART, as the kernel's calls. In a
 * process that never had handlers of both kinds, the first 10 ms after it got them are an
 * exception: then any handler ends the wait.
 *
 * Return: as wait_until_ready(); -EINTR only after a handler without SA_RESTART.
 */
int wait_restarted(struct rsock *rs, short wanted, bool (*ready)(struct rsock *rs),
		   struct cm_time deadline);

/** wait_after_fork() - in a forked child: forget the parent's wakers */
void wait_after_fork(void);

#endif
