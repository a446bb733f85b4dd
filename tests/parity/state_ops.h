/* SPDX-License-Identifier: BSD-2-Clause */
/* The calls that states.c makes in every state. */
#ifndef PARITY_STATE_OPS_H
#define PARITY_STATE_OPS_H

#include "parity.h"

struct state_op {
	const char *name; /* NULL ends the table */
	int (*call)(struct scene *s, struct rdma_cm_id *id);
	unsigned flags;
};

enum state_op_flags {
	ACCEPTS = 1,	  /* on the id of a request it establishes the connection */
	NEEDS_DEVICE = 2, /* stock crashes on an id without a device */
	/*
	 * While a request is outstanding, stock answers it with REJ but continues to retransmit it,
	 * and destroying the id then takes 98 s.
	 */
	ENDS_REQUEST = 4,
	/* Stock sends the following messages over an alternate path that was never set. */
	USES_ALTERNATE = 8,
};

extern const struct state_op state_ops[];

/**
 * run_state_op() - make one call and print its outcome
 * @op:    the call
 * @s:     the scene
 * @id:    the id
 * @avoid: flags of calls not to make; NEEDS_DEVICE is handled here
 *
 * An accepted request is continued to ESTABLISHED.
 */
void run_state_op(const struct state_op *op, struct scene *s, struct rdma_cm_id *id,
		  unsigned avoid);

/**
 * show_remains() - print the state after a call: device, addresses, the queue pair's state
 * @id: the id, with or without a queue pair
 *
 * Prints nothing if nothing has changed since it was last called.
 */
void show_remains(const struct rdma_cm_id *id);

#endif
