/* SPDX-License-Identifier: BSD-2-Clause */
/* The states of a queue pair: allowed transitions, with required and optional attributes. */
#ifndef FABRIC_QP_STATE_H
#define FABRIC_QP_STATE_H

#include <infiniband/verbs.h>
#include <stdbool.h>

/**
 * qp_state_allows() - return whether a transition is allowed with these attributes
 * @mask: enum ibv_qp_attr_mask; IBV_QP_STATE is ignored
 *
 * IBTA vol. 1, 11.2.5.2, table 96: all required attributes must be present, and no others except
 * optional ones.
 */
bool qp_state_allows(enum ibv_qp_type type, enum ibv_qp_state from, enum ibv_qp_state to,
		     unsigned int mask);

#endif
