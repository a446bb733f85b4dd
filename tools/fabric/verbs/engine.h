/* SPDX-License-Identifier: BSD-2-Clause */
/* The thread of a device context, which handles packets and timers. */
#ifndef FABRIC_ENGINE_H
#define FABRIC_ENGINE_H

#include "tools/fabric/verbs/objects.h"

/**
 * context_start() - open a socket and start a thread for the context, if not done; locked
 *
 * Return: 0 or -errno.
 */
int context_start(struct fab_context *context);

/**
 * context_leave_to_parent() - in a forked child: close the copies of what is the parent's; locked
 *
 * The child's queue pairs of before are in the error state. context_start() opens its own socket.
 */
void context_leave_to_parent(struct fab_context *context);

/** context_stop() - end the thread and close the socket; not locked */
void context_stop(struct fab_context *context);

/** context_deliver() - deliver a packet to its queue pair, if allowed; locked */
void context_deliver(struct fab_context *context, const struct fab_packet *packet,
		     const void *payload);

/** context_expire() - check the deadlines of all queue pairs; locked */
void context_expire(struct fab_context *context);

enum progress {
	PROGRESS_NONE, /* there were no packets */
	PROGRESS_DONE, /* all packets that were there have been handled */
	PROGRESS_MORE, /* there may be more */
};

/**
 * context_progress() - handle received packets, as the thread does; locked
 * @by_socket: those too that are not in memory
 */
enum progress context_progress(struct fab_context *context, bool by_socket);

/**
 * context_catch_up() - handle what has come, before a queue pair ends; locked
 *
 * A device would have handled it when it came; the thread may still wait for a processor.
 */
void context_catch_up(struct fab_context *context);

#endif
