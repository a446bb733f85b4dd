/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An event loop: a set of file descriptors, each with a function to call when it is ready. Built on
 * epoll. Timers are base/timer.h; cm_time_ms_until() turns a deadline into the timeout of a turn.
 *
 * One thread makes the turns. Others may add a watch; only that thread may change or remove one,
 * and it may do so while a turn hands out events: a removed watch is not called any more.
 */
#ifndef BASE_LOOP_H
#define BASE_LOOP_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/epoll.h>

#define LOOP_EVENTS_MAX 64 /* a turn */

struct watch {
	int fd;		    /* -1 while it is not watched */
	uint32_t events;    /* EPOLLIN, EPOLLOUT, ...; 0: paused */
	bool is_registered; /* with the kernel; not while it is paused */
	void (*ready)(struct watch *watch, uint32_t events);
};

struct loop {
	int fd; /* of epoll; -1 while there is none */
	struct epoll_event event[LOOP_EVENTS_MAX];
	int n_events; /* of this turn, not yet handed out */
};

/** loop_init() - Return: 0 or -errno, and then loop_fini() is allowed. */
int loop_init(struct loop *loop);

/** loop_fini() - the watches and their descriptors are the caller's. Allowed twice. */
void loop_fini(struct loop *loop);

/**
 * loop_watch() - have a function called whenever a descriptor is ready
 * @watch:  the caller's, until loop_unwatch() or loop_fini(); filled in
 * @fd:     stays the caller's
 * @events: EPOLLIN, EPOLLOUT or both, with EPOLLET if wanted
 *
 * Return: 0; -EBADF for a negative @fd; -errno of epoll_ctl().
 */
int loop_watch(struct loop *loop, struct watch *watch, int fd, uint32_t events,
	       void (*ready)(struct watch *watch, uint32_t events));

/**
 * loop_change() - wait for other events
 * @events: 0: none, not even EPOLLHUP, until the next change
 *
 * Return: 0 or -errno, and nothing has changed.
 */
int loop_change(struct loop *loop, struct watch *watch, uint32_t events);

/** loop_unwatch() - stop; allowed for a watch that never was, if its fd is -1. */
void loop_unwatch(struct loop *loop, struct watch *watch);

/**
 * loop_turn() - wait, and call the function of each descriptor that is ready
 * @timeout_ms: at most; -1: no limit; 0: do not wait
 *
 * Return: how many events there were; 0 also when a signal ended the wait; -errno.
 */
int loop_turn(struct loop *loop, int timeout_ms);

/** loop_wait() - the first half of loop_turn(). Return: as that. */
int loop_wait(struct loop *loop, int timeout_ms);

/** loop_dispatch() - the second half: call the functions of what loop_wait() has found. */
void loop_dispatch(struct loop *loop);

#endif
