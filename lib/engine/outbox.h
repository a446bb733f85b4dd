/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Messages that a step of the core wants sent, kept until the engine's lock is released. On the
 * caller's stack.
 */
#ifndef LIB_ENGINE_OUTBOX_H
#define LIB_ENGINE_OUTBOX_H

#include "cm/core.h"
#include "lib/portd/client/portd_client.h"

/* Of a message and a call, or of two calls; besides, any number that send nothing. */
#define OUTBOX_MAX	  (2 * CM_SENDS_MAX)
#define OUTBOX_CLOSED_MAX 4

struct outbox {
	unsigned int n;
	struct cm_send send[OUTBOX_MAX]; /* each holds a reference to its port */
	/* Freed comm ids; cmportd gets them after their last messages. */
	unsigned int n_closed;
	struct portd_close closed[OUTBOX_CLOSED_MAX];
};

/** outbox_init() - initialise an empty outbox. */
static inline void outbox_init(struct outbox *box)
{
	box->n = 0;
	box->n_closed = 0;
}

/**
 * outbox_flush() - send all messages, in order; no lock is held
 *
 * A message that cannot be sent counts as lost: the protocol retransmits what matters.
 */
void outbox_flush(struct outbox *box);

/**
 * outbox_hold() - as outbox_flush(), but defer sending until outbox_release()
 * @again: the messages are retransmissions
 *
 * Lets the engine's thread answer a batch of received messages at once.
 */
void outbox_hold(struct outbox *box, bool again);

/** outbox_release() - send the held messages; no lock is held. */
void outbox_release(void);

#endif
