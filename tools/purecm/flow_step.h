/* SPDX-License-Identifier: BSD-2-Clause */
/* The effect of a message on the flow that flow.c has found. */
#ifndef TOOLS_PURECM_FLOW_STEP_H
#define TOOLS_PURECM_FLOW_STEP_H

#include "tools/purecm/flow.h"

/* An identical message within this time is the same packet, captured again. */
#define FLOW_COPY_NS 5000000

/* Messages of both ends that are sent within this time may cross each other. */
#define FLOW_CROSSING_NS 20000000

/*
 * The usual states of both ends for a message. IDLE, in which most messages are invalid, means
 * none.
 */
struct flow_usual {
	enum cm_state sender;
	enum cm_state receiver;
};

/** flow_step_usual() - for messages of flows whose first message was not seen */
const struct flow_usual *flow_step_usual(enum cm_attr attr);

/**
 * flow_step_take() - advance both ends, and store the message's data
 * @step: flow and from are inputs, the rest is set
 */
void flow_step_take(struct flow_step *step, const struct observation *observation,
		    const struct cm_msg *msg);

#endif
