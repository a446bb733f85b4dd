/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Time for the protocol core: passed in by the caller, never read from a clock. A struct, so that
 * it cannot be confused with a duration or another unit.
 */
#ifndef BASE_TIME_H
#define BASE_TIME_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#define CM_NS_PER_MS UINT64_C(1000000)

struct cm_time {
	uint64_t ns; /* since a fixed point in time; monotonic */
};

#define CM_TIME_NEVER ((struct cm_time){ UINT64_MAX })

static inline struct cm_time cm_time_after(struct cm_time from, uint64_t duration_ns)
{
	if (duration_ns > UINT64_MAX - from.ns)
		return CM_TIME_NEVER;
	return (struct cm_time){ from.ns + duration_ns };
}

static inline bool cm_time_reached(struct cm_time deadline, struct cm_time now)
{
	return now.ns >= deadline.ns;
}

static inline struct cm_time cm_time_earlier(struct cm_time a, struct cm_time b)
{
	return a.ns < b.ns ? a : b;
}

static inline struct cm_time cm_time_later(struct cm_time a, struct cm_time b)
{
	return a.ns < b.ns ? b : a;
}

/**
 * cm_time_ms_until() - timeout for poll() or epoll_wait() until a deadline
 *
 * Return: milliseconds, rounded up, so that the deadline has passed on return; -1 for
 * CM_TIME_NEVER.
 */
static inline int cm_time_ms_until(struct cm_time deadline, struct cm_time now)
{
	uint64_t ms;

	if (deadline.ns == UINT64_MAX)
		return -1;
	if (cm_time_reached(deadline, now))
		return 0;
	ms = (deadline.ns - now.ns + CM_NS_PER_MS - 1) / CM_NS_PER_MS;
	return ms < INT_MAX ? (int)ms : INT_MAX;
}

#endif
