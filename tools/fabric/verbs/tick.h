/* SPDX-License-Identifier: BSD-2-Clause */
/* The timer of a context, which checks the deadlines of its queue pairs while it runs. Locked. */
#ifndef FABRIC_TICK_H
#define FABRIC_TICK_H

#include "tools/fabric/verbs/objects.h"

#define TICK_NS 5000000 /* the interval */

/** tick_start() - start the timer, unless it runs */
void tick_start(struct fab_context *context);

/** tick_stop() - stop the timer; there are no deadlines */
void tick_stop(struct fab_context *context);

#endif
