/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Completions that are held back from programs that answer with writes (ack.h defines that). Such a
 * program polls until its write is complete, and then watches its memory for the peer's, without
 * asking the library: the thread would have to take that packet. If the ACK comes before the peer's
 * message, the completion is held back until that is there, and meanwhile the program takes packets
 * by polling. A device may complete a write as late as that.
 *
 * A completion is shown when a message comes, when another completion follows it, when the program
 * polls in vain HELD_POLLS times or arms a completion queue, at the second tick of the timer, and
 * when its queue pair ends. A context holds back one. All functions are locked.
 */
#ifndef FABRIC_HELD_H
#define FABRIC_HELD_H

#include "tools/fabric/verbs/objects.h"

/** held_consider() - hold back the last completion of a queue pair's sends, if that may help */
void held_consider(struct fab_qp *qp);

/** held_show() - show the completion that is held back, if there is one */
void held_show(struct fab_context *context);

/** held_polled() - note that a poll has found no completion */
void held_polled(struct fab_context *context);

/** held_ticked() - note a tick of the timer */
void held_ticked(struct fab_context *context);

#endif
