/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The event channels that are open. A program may destroy a channel that another thread is about to
 * wait on, again; it then hands us a pointer to what was freed, which is looked up here before
 * anybody follows it. channel.c asks.
 */
#ifndef LIB_EVENT_CHANNEL_SET_H
#define LIB_EVENT_CHANNEL_SET_H

#include "lib/event/channel.h"

/** channel_set_add() - a new channel. */
void channel_set_add(struct channel *channel);

/** channel_set_remove() - it is about to be closed. Return: whether it was open. */
bool channel_set_remove(struct channel *channel);

/**
 * channel_set_lock() - lock a channel if it is open
 * @channel: any pointer; it is not followed unless it is an open channel's
 *
 * It cannot be freed while it is locked. Locks nest: the set's, channel.
 *
 * Return: whether it is open, and locked.
 */
bool channel_set_lock(struct channel *channel);

/**
 * channel_set_just_lost() - was this a channel that blocks, which another thread has closed within
 *                           the last second?
 *
 * Then the caller was on its way back to it, and is to be treated as if he were there already.
 */
bool channel_set_just_lost(const struct channel *channel);

/** channel_set_after_fork() - another thread of the parent may have been here. */
void channel_set_after_fork(void);

#endif
