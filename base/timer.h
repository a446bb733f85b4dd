/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The core's timers: a pairing heap of deadlines, threaded through the connections, so that
 * arming one allocates nothing. O(1) to arm and to see the first, O(log n) amortised to disarm.
 */
#ifndef BASE_TIMER_H
#define BASE_TIMER_H

#include <stdbool.h>

#include "base/time.h"

struct cm_timer {
	struct cm_time deadline;
	struct cm_timer *child;
	struct cm_timer *next;	/* sibling */
	struct cm_timer **link; /* what points here; NULL while not armed */
};

struct cm_timers {
	struct cm_timer *first;
};

/** cm_timer_is_armed() - true between arm and disarm. A zeroed timer is not armed. */
static inline bool cm_timer_is_armed(const struct cm_timer *timer)
{
	return timer->link;
}

/** cm_timer_arm() - set or move a deadline. */
void cm_timer_arm(struct cm_timers *timers, struct cm_timer *timer, struct cm_time deadline);

/** cm_timer_disarm() - forget a deadline; harmless if it is not armed. */
void cm_timer_disarm(struct cm_timers *timers, struct cm_timer *timer);

/** cm_timers_deadline() - the earliest deadline, CM_TIME_NEVER if there is none. */
struct cm_time cm_timers_deadline(const struct cm_timers *timers);

/** cm_timers_pop() - disarm and return the first timer whose deadline is reached, or NULL. */
struct cm_timer *cm_timers_pop(struct cm_timers *timers, struct cm_time now);

#endif
