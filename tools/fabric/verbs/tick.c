/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The timer of a context: see tick.h.
 */
#include "tools/fabric/verbs/tick.h"

#include <sys/timerfd.h>

static void set_timer(struct fab_context *context, long ns)
{
	struct itimerspec every = { .it_interval = { .tv_nsec = ns },
				    .it_value = { .tv_nsec = ns } };

	timerfd_settime(context->timer_fd, 0, &every, NULL);
	context->is_ticking = ns != 0;
}

void tick_start(struct fab_context *context)
{
	if (!context->is_ticking)
		set_timer(context, TICK_NS);
}

void tick_stop(struct fab_context *context)
{
	set_timer(context, 0);
}
