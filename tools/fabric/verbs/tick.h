/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The timer of a context: while it ticks, the deadlines of its queue pairs are looked at. Locked.
 */
#ifndef FABRIC_TICK_H
#define FABRIC_TICK_H

#include "tools/fabric/verbs/objects.h"

/** tick_start() - unless it ticks already. */
void tick_start(struct fab_context *context);

/** tick_stop() - there are no deadlines. */
void tick_stop(struct fab_context *context);

#endif
