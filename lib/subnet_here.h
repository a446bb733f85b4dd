/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Subnet administrators asked by this process itself, where there is no cmportd: an agent of
 * mad/sa/ for each InfiniBand port that something was asked of. Called by subnet.c and the engine.
 *
 * The engine's lock is held, except where it says otherwise. What is sent does not block: it needs
 * no link address.
 */
#ifndef LIB_SUBNET_HERE_H
#define LIB_SUBNET_HERE_H

#include "lib/engine.h"

/** subnet_here_ask() - as subnet_ask(); done() may be called before it returns. */
int subnet_here_ask(struct engine *engine, struct subnet_ask *ask);

/** subnet_here_drop() - as subnet_drop() */
void subnet_here_drop(struct subnet_ask *ask);

/**
 * subnet_here_receive() - a descriptor of the poll set is readable; takes the lock
 * @who: as it was watched
 *
 * Return: false if it is not one of these.
 */
bool subnet_here_receive(const void *who);

/** subnet_here_expire() - run timers; takes the lock. */
void subnet_here_expire(struct cm_time now);

/** subnet_here_deadline() - when that is next needed. */
struct cm_time subnet_here_deadline(const struct engine *engine);

/** subnet_here_after_fork() - in a forked child: close the parent's descriptors. */
void subnet_here_after_fork(struct engine *engine);

#endif
