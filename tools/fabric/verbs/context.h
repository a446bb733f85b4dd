/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A device context: its counting of objects, its events, and the tables of functions that verbs.h's
 * inline functions call through.
 */
#ifndef FABRIC_CONTEXT_H
#define FABRIC_CONTEXT_H

#include <unistd.h>

#include "tools/fabric/verbs/objects.h"

/** context_handle() - a number for a new object; counts it; locked. */
static inline uint32_t context_handle(struct fab_context *context)
{
	context->n_objects++;
	return context->next_handle++;
}

/** context_command() - takes as long as what a driver has its firmware do; not locked. */
static inline void context_command(struct ibv_context *verbs)
{
	uint32_t us = to_context(verbs)->device->page->limit[FAB_LIMIT_SLOW];

	if (us)
		usleep(us);
}

/** context_async() - tell the program of an event. */
void context_async(struct fab_context *context, const struct ibv_async_event *event);

/** context_set_ops() - fill the two tables of functions. */
void context_set_ops(struct verbs_context *verbs);

#endif
