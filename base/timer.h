/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Timers: a pairing heap of deadlines with intrusive nodes, so that arming allocates nothing. O(1)
 * to arm and to read the earliest deadline, O(log n) amortised to disarm.
 */
#ifndef BASE_TIMER_H
#define BASE_TIMER_H

#include <stdbool.h>

#include "base/time.h"

struct cm_timer {
	struct cm_time deadline;
	struct cm_timer *child;
	struct cm_timer *next;	/* sibling */
	struct cm_timer **link; /* the pointer that points here; NULL while not armed */
};

struct cm_timers {
	struct cm_timer *first;
};

/** cm_timer_is_armed() - true if armed. A zeroed timer is not armed. */
static inline bool cm_timer_is_armed(const struct cm_timer *timer)
{
	return timer->link;
}

/** cm_timer_arm() - arm a timer, or change its deadline. */
void cm_timer_arm(struct cm_timers *timers, struct cm_timer *timer, struct cm_time deadline);

/** cm_timer_disarm() - disarm a timer; no effect if it is not armed. */
void cm_timer_disarm(struct cm_timers *timers, struct cm_timer *timer);

/** cm_timers_deadline() - the earliest deadline, or CM_TIME_NEVER. */
struct cm_time cm_timers_deadline(const struct cm_timers *timers);

/** cm_timers_pop() - disarm and return the first timer whose deadline has passed, or NULL. */
struct cm_timer *cm_timers_pop(struct cm_timers *timers, struct cm_time now);

#endif
