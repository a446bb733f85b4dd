/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a step of the core wants sent, kept until the engine's lock is given up. On the stack of
 * whoever steps the core.
 */
#ifndef LIB_ENGINE_OUTBOX_H
#define LIB_ENGINE_OUTBOX_H

#include "cm/core.h"
#include "lib/portd/client/client.h"

#define OUTBOX_MAX	  (2 * CM_SENDS_MAX)
#define OUTBOX_CLOSED_MAX 4

struct outbox {
	unsigned int n;
	struct cm_send send[OUTBOX_MAX]; /* each holds a reference to its port */
	/* Comm ids that are free again: cmportd is told after it was given their last messages. */
	unsigned int n_closed;
	struct portd_close closed[OUTBOX_CLOSED_MAX];
};

/** outbox_init() - an empty outbox. */
static inline void outbox_init(struct outbox *box)
{
	box->n = 0;
	box->n_closed = 0;
}

/**
 * outbox_flush() - send everything, in order; no lock is held
 *
 * A message that cannot be sent is as good as lost: the protocol repeats what matters.
 *
 * Return: 0, or the -errno of the first that failed.
 */
int outbox_flush(struct outbox *box);

/**
 * outbox_hold() - as outbox_flush(), but nothing is sent before outbox_release()
 * @again: these messages were sent before, and not answered
 *
 * The engine's thread may have received many messages, and answers them at once.
 */
void outbox_hold(struct outbox *box, bool again);

/** outbox_release() - send what was held; no lock is held. */
void outbox_release(void);

#endif
