/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The thread of a device context, which takes packets and looks at timers.
 */
#ifndef FABRIC_ENGINE_H
#define FABRIC_ENGINE_H

#include "tools/fabric/verbs/objects.h"

/**
 * context_start() - a socket and a thread for the context, unless it has them; locked
 *
 * A child that was forked since gets its own.
 *
 * Return: 0 or -errno.
 */
int context_start(struct fab_context *context);

/** context_stop() - end the thread and give back the socket; not locked. */
void context_stop(struct fab_context *context);

/** context_deliver() - a packet came: give it to its queue pair, if that may have it; locked. */
void context_deliver(struct fab_context *context, const struct fab_packet *packet,
		     const void *payload);

/** context_expire() - time went by: look at the deadlines of all queue pairs; locked. */
void context_expire(struct fab_context *context);

/**
 * context_progress() - take packets that have come, as the thread would; locked
 *
 * Return: whether there may be more.
 */
bool context_progress(struct fab_context *context);

#endif
