/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A device context: its count of objects, its events, and the tables of functions behind the inline
 * functions of verbs.h.
 */
#ifndef FABRIC_CONTEXT_H
#define FABRIC_CONTEXT_H

#include <unistd.h>

#include "tools/fabric/verbs/objects.h"

/** context_handle() - count a new object, and return its handle; locked */
static inline uint32_t context_handle(struct fab_context *context)
{
	context->n_objects++;
	return context->next_handle++;
}

/** context_command() - wait as long as a firmware command takes; not locked */
static inline void context_command(struct ibv_context *verbs)
{
	uint32_t us = to_context(verbs)->device->page->limit[FAB_LIMIT_SLOW];

	if (us)
		usleep(us);
}

/** context_report_event() - report an asynchronous event */
void context_report_event(struct fab_context *context, const struct ibv_async_event *event);

/** context_set_ops() - set the two tables of functions */
void context_set_ops(struct verbs_context *verbs);

#endif
