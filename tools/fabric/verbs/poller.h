/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A program that polls a completion queue all the time handles packets itself, in ibv_poll_cq().
 * The context's thread leaves them to it, or each packet would wake the thread, too, and cost a
 * switch between threads.
 *
 * The thread takes over again when the program arms a completion queue, and at the second tick in a
 * row since whose predecessor the program has hardly polled: it computes, or watches its memory.
 * From then on, packets are left to it only while it polls in vain, until it finds a completion.
 * Each further such tick doubles the polls that it must do in vain before, and each completion that
 * it finds halves them, as do LESS_AFTER completions while the thread has the packets: it may have
 * been another process that kept the program from polling. After COMPLETIONS completions, before
 * each of which the program polled in vain, without a packet that the thread took before it did,
 * packets are left to the program as before the first such tick. All functions are locked.
 */
#ifndef FABRIC_POLLER_H
#define FABRIC_POLLER_H

#include "tools/fabric/verbs/objects.h"

/** poller_polled() - the program has polled in vain */
void poller_polled(struct fab_context *context);

/** poller_note_completion() - the program has got a completion, and may do something else now */
void poller_note_completion(struct fab_context *context);

/** poller_thread_took() - note that the thread was woken by a packet and handled it */
void poller_thread_took(struct fab_context *context);

/** poller_arms() - the program is going to wait for an event */
void poller_arms(struct fab_context *context);

/** poller_has_packets() - return whether the thread leaves packets to the program; by the thread */
bool poller_has_packets(const struct fab_context *context);

/** poller_ticked() - check whether the program still polls; by the thread, at each tick */
void poller_ticked(struct fab_context *context);

#endif
