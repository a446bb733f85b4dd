/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a message does to the flow that flow.c has found for it.
 */
#ifndef TOOLS_PURECM_FLOW_STEP_H
#define TOOLS_PURECM_FLOW_STEP_H

#include "tools/purecm/flow.h"

/* The same message a second time within this time is the same packet, captured twice. */
#define FLOW_COPY_NS 5000000

/* Where a message usually finds its two ends. IDLE, where most messages mean nothing, stands for
 * nowhere. */
struct flow_usual {
	enum cm_state sender;
	enum cm_state receiver;
};

/** flow_step_usual() - of the messages of flows whose beginning was not seen */
const struct flow_usual *flow_step_usual(enum cm_attr attr);

/**
 * flow_step_take() - move both ends, remember what the message says
 * @step: flow and from are set, the rest is filled
 */
void flow_step_take(struct flow_step *step, const struct observation *observation,
		    const struct cm_msg *msg);

#endif
