/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The state machine: one table, one function that moves along it.
 */
#ifndef CM_FSM_H
#define CM_FSM_H

#include "cm/core.h"

/* What an action has to work with. */
struct cm_turn {
	struct cm_core *core;
	struct cm_time now;
	const struct cm_args *args; /* of a call; never NULL, all zero for other events */
	const struct cm_msg *msg;   /* that came in, or NULL */
	struct cm_effects *out;
};

typedef void cm_action(struct cm_conn *conn, struct cm_turn *turn);

struct cm_edge {
	enum cm_state to;
	cm_action *act; /* NULL: this event is not legal in this state */
};

/**
 * cm_step() - something happens to a connection
 *
 * Return: 0; -EINVAL if the event is not legal in the connection's state: nothing moved.
 */
int cm_step(struct cm_conn *conn, enum cm_event event, struct cm_turn *turn);

/**
 * cm_record_step() - something happens to a connection that another core has
 *
 * The state moves by the table, and nothing is done.
 *
 * Return: false if the event is not legal in the record's state: nothing moved.
 */
bool cm_record_step(struct cm_record *record, enum cm_event event);

/** cm_record_begin() - a connection that another core has begins anew, with this event. */
void cm_record_begin(struct cm_record *record, enum cm_event event);

/** cm_begin_in() - a record of a connection that another core has brought there has this state. */
void cm_begin_in(struct cm_record *record, enum cm_state state);

/** cm_edge_of() - one cell of the table, for tests and for the generated diagram. */
const struct cm_edge *cm_edge_of(enum cm_state state, enum cm_event event);

#endif
