/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The states of a queue pair: which change may be asked for, and what must and may come with it.
 */
#ifndef FABRIC_QP_STATE_H
#define FABRIC_QP_STATE_H

#include <infiniband/verbs.h>
#include <stdbool.h>

/**
 * qp_state_allows() - may a queue pair go from one state to another with these attributes?
 * @mask: enum ibv_qp_attr_mask; IBV_QP_STATE does not matter
 *
 * IBTA vol. 1, 11.2.5.2, table 96: all that are required must be there, and none that is neither
 * required nor optional.
 */
bool qp_state_allows(enum ibv_qp_type type, enum ibv_qp_state from, enum ibv_qp_state to,
		     unsigned int mask);

#endif
