/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The set of open event channels. A program may destroy a channel that another thread is about to
 * wait on again, and so pass a dangling pointer; it is looked up here before it is dereferenced.
 */
#ifndef LIB_EVENT_CHANNEL_SET_H
#define LIB_EVENT_CHANNEL_SET_H

#include "lib/event/channel.h"

/** channel_set_add() - add a new channel. */
void channel_set_add(struct channel *channel);

/** channel_set_remove() - remove a channel before closing it. Return: true if it was open. */
bool channel_set_remove(struct channel *channel);

/**
 * channel_set_lock() - lock a channel if it is open
 * @channel: any pointer; dereferenced only if it is an open channel
 *
 * A locked channel is not freed. Lock order: set, channel.
 *
 * Return: 0 with its lock held; -EBADF if it is not open; -EACCES if it is inherited.
 */
int channel_set_lock(struct channel *channel);

/**
 * channel_set_just_lost() - true if another thread closed this blocking channel within 1 s
 *
 * The caller was then on its way back to the channel; treat it as if it were already waiting.
 */
bool channel_set_just_lost(const struct channel *channel);

/** channel_set_after_fork() - in a forked child: reset the lock. */
void channel_set_after_fork(void);

#endif
