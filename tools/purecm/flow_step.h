/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a message does to the flow that flow.c has found for it.
 */
#ifndef TOOLS_PURECM_FLOW_STEP_H
#define TOOLS_PURECM_FLOW_STEP_H

#include "tools/purecm/flow.h"

/**
 * flow_step_take() - move both ends, remember what the message says
 * @step: flow and from are set, the rest is filled
 */
void flow_step_take(struct flow_step *step, const struct observation *observation,
		    const struct cm_msg *msg);

#endif
