/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The verbs layer: queue pairs, their attributes in each state, and the moves between states.
 * Everything here runs in the program's threads.
 */
#ifndef LIB_VERBS_QP_H
#define LIB_VERBS_QP_H

#include "lib/id/id.h"

/**
 * qp_to_rts() - make the id's queue pair ready: RTR, then RTS
 *
 * The connection has to be where the attributes are known: REQ received, or REP received.
 *
 * Return: 0 or -errno; the queue pair is where it got to then.
 */
int qp_to_rts(struct id *id);

/** qp_to_error() - flush the id's queue pair; harmless if it has none. Return: 0 or -errno. */
int qp_to_error(struct id *id);

/**
 * qp_attr_fill() - attributes for a move of a queue pair to INIT, RTR or RTS
 * @attr: qp_state says which; everything else that @ret_mask names is filled in
 * @with_access: also what the peer may do, which else only INIT says
 * @ret_mask: for ibv_modify_qp()
 *
 * Return: 0, -EINVAL if the connection is not where these attributes are known.
 */
int qp_attr_fill(struct id *id, struct ibv_qp_attr *attr, bool with_access, int *ret_mask);

/** qp_qkey() - of the id's datagram queue pair, made or not. */
uint32_t qp_qkey(struct id *id);

#endif
