/* SPDX-License-Identifier: BSD-2-Clause */
/* A pairing heap: no node is later than its children, which form a list. */
#include "base/timer.h"

#include <stddef.h>

static void replace_link(struct cm_timer **link, struct cm_timer *node)
{
	*link = node;
	if (node)
		node->link = link;
}

/* Joins two heaps. The remaining root keeps its siblings, the other loses them. */
static struct cm_timer *meld_heaps(struct cm_timer *a, struct cm_timer *b)
{
	struct cm_timer *swap;

	if (!a || !b)
		return a ? a : b;
	if (b->deadline.ns < a->deadline.ns) {
		swap = a;
		a = b;
		b = swap;
	}
	replace_link(&b->next, a->child);
	replace_link(&a->child, b);
	return a;
}

/*
 * Melds siblings in pairs, then the pairs from last to first, which makes removal O(log n).
 * Iterative, because the list can be as long as there are timers.
 */
static struct cm_timer *meld_siblings(struct cm_timer *list)
{
	struct cm_timer *pairs = NULL;
	struct cm_timer *all = NULL;
	struct cm_timer *a, *b, *next;

	while (list) {
		a = list;
		b = a->next;
		list = b ? b->next : NULL;
		a = meld_heaps(a, b);
		a->next = pairs;
		pairs = a;
	}
	for (; pairs; pairs = next) {
		next = pairs->next;
		pairs->next = NULL;
		all = meld_heaps(all, pairs);
	}
	return all;
}

void cm_timer_arm(struct cm_timers *timers, struct cm_timer *timer, struct cm_time deadline)
{
	cm_timer_disarm(timers, timer);
	timer->deadline = deadline;
	replace_link(&timers->first, meld_heaps(timers->first, timer));
}

void cm_timer_disarm(struct cm_timers *timers, struct cm_timer *timer)
{
	struct cm_timer *children;

	if (!timer->link)
		return;
	replace_link(timer->link, timer->next);
	children = meld_siblings(timer->child);
	replace_link(&timers->first, meld_heaps(timers->first, children));
	*timer = (struct cm_timer){ .deadline = timer->deadline };
}

struct cm_time cm_timers_deadline(const struct cm_timers *timers)
{
	return timers->first ? timers->first->deadline : CM_TIME_NEVER;
}

struct cm_timer *cm_timers_pop(struct cm_timers *timers, struct cm_time now)
{
	struct cm_timer *first = timers->first;

	if (!first || !cm_time_reached(first->deadline, now))
		return NULL;
	cm_timer_disarm(timers, first);
	return first;
}
