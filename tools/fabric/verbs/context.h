/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the files of verbs/ want of a device context: its thread, its events, its counting of
 * objects, and the tables of functions that verbs.h's inline functions call through.
 */
#ifndef FABRIC_CONTEXT_H
#define FABRIC_CONTEXT_H

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

/**
 * context_progress() - take packets that have come, as the thread would; locked
 *
 * Return: whether there may be more.
 */
bool context_progress(struct fab_context *context);

/** context_tick() - have timers looked at from now on, until nothing is active; locked. */
void context_tick(struct fab_context *context);

/** context_handle() - a number for a new object; counts it; locked. */
uint32_t context_handle(struct fab_context *context);

/** context_async() - tell the program of an event. */
void context_async(struct fab_context *context, const struct ibv_async_event *event);

/** context_now_ns() - CLOCK_MONOTONIC. */
uint64_t context_now_ns(void);

/** context_set_ops() - fill the two tables of functions. */
void context_set_ops(struct verbs_context *verbs);

#endif
