/* SPDX-License-Identifier: BSD-2-Clause */
/* The state machine: one table, and one function that applies it. */
#ifndef CM_FSM_H
#define CM_FSM_H

#include "cm/core.h"

/* The context of an action. */
struct cm_context {
	struct cm_core *core;
	struct cm_time now;
	const struct cm_args *args; /* of a call; never NULL, all zero for other events */
	const struct cm_msg *msg;   /* the received message, or NULL */
	struct cm_effects *out;
};

typedef void cm_action(struct cm_conn *conn, struct cm_context *ctx);

struct cm_edge {
	uint8_t to;  /* enum cm_state */
	uint8_t act; /* number of the action; 0: the event is not legal in this state */
};

/**
 * cm_step() - apply an event to a connection
 *
 * Return: 0; -EINVAL, with nothing changed, if the event is not legal in the connection's state.
 */
int cm_step(struct cm_conn *conn, enum cm_event event, struct cm_context *ctx);

/**
 * cm_record_step() - apply an event to the record of another core's connection
 *
 * Moves the state by the table, without running an action.
 *
 * Return: false, with nothing changed, if the event is not legal in the record's state.
 */
bool cm_record_step(struct cm_record *record, enum cm_event event);

/** cm_begin_in() - set a record's state to one that another core brought about. */
void cm_begin_in(struct cm_record *record, enum cm_state state);

/** cm_edge_of() - one cell of the table, for tests and for the generated diagram. */
const struct cm_edge *cm_edge_of(enum cm_state state, enum cm_event event);

#endif
