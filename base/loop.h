/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An event loop: a set of file descriptors, each with a function to call when it is ready. Built on
 * epoll. For timers, see base/timer.h; cm_time_ms_until() turns a deadline into the timeout of a
 * turn.
 *
 * One thread runs the turns. Other threads may add a watch; only that thread may change or remove
 * one, even from a ready() function: a removed watch is not called again.
 */
#ifndef BASE_LOOP_H
#define BASE_LOOP_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/epoll.h>

#define LOOP_EVENTS_MAX 64 /* per turn */

struct watch {
	int fd;		    /* -1 while not watched */
	uint32_t events;    /* EPOLLIN, EPOLLOUT, ...; 0: paused */
	uint32_t came;	    /* those that ready() is called for */
	bool is_registered; /* with the kernel; false while paused */
	void (*ready)(struct watch *watch);
};

struct loop {
	int fd; /* epoll descriptor, or -1 */
	struct epoll_event event[LOOP_EVENTS_MAX];
	int n_events;	      /* of this turn, not yet dispatched */
	unsigned int n_turns; /* dispatched so far */
};

/** loop_init() - initialise. Return: 0 or -errno; loop_fini() is allowed either way. */
int loop_init(struct loop *loop);

/** loop_fini() - close; leaves the watches and their descriptors alone. May be called twice. */
void loop_fini(struct loop *loop);

/**
 * loop_watch() - call a function whenever a descriptor is ready
 * @watch:  filled in; must stay valid until loop_unwatch() or loop_fini()
 * @fd:     descriptor; remains the caller's
 * @events: EPOLLIN, EPOLLOUT or both, optionally with EPOLLET
 *
 * Return: 0; -EBADF for a negative @fd; -errno of epoll_ctl().
 */
int loop_watch(struct loop *loop, struct watch *watch, int fd, uint32_t events,
	       void (*ready)(struct watch *watch));

/**
 * loop_change() - change the events of a watch
 * @events: new events; 0 pauses the watch, even for EPOLLHUP, until the next change
 *
 * Return: 0; -errno, with nothing changed.
 */
int loop_change(struct loop *loop, struct watch *watch, uint32_t events);

/** loop_unwatch() - remove a watch; no effect if its fd is -1. */
void loop_unwatch(struct loop *loop, struct watch *watch);

/**
 * loop_turn() - wait, and call the function of each descriptor that is ready
 * @timeout_ms: timeout in milliseconds; -1 waits forever, 0 polls
 *
 * Return: number of events, 0 if a signal ended the wait; -errno.
 */
int loop_turn(struct loop *loop, int timeout_ms);

/** loop_wait() - the first half of loop_turn(), with the same return value. */
int loop_wait(struct loop *loop, int timeout_ms);

/**
 * loop_dispatch() - the second half: call the functions for the events of loop_wait()
 *
 * Each turn begins with another one, as the first may leave no time for the last.
 */
void loop_dispatch(struct loop *loop);

#endif
