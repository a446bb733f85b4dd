/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Queue pairs, their attributes in each state, and the transitions between states. Used in the
 * program's threads only.
 */
#ifndef LIB_VERBS_QP_H
#define LIB_VERBS_QP_H

#include "lib/id/id.h"

/**
 * qp_to_rts() - move the id's queue pair to RTR, then to RTS
 *
 * REQ or REP must have been received, so that the attributes are known.
 *
 * Return: 0; -errno, and the queue pair may be in an intermediate state.
 */
int qp_to_rts(struct id *id);

/** qp_to_error() - move the id's queue pair to ERR, if it has one. Return: 0 or -errno. */
int qp_to_error(struct id *id);

/**
 * qp_restart() - move a datagram queue pair from ERR to RTS, so that its number stays
 *
 * All its requests must have completed. Return: 0 or -errno.
 */
int qp_restart(struct id *id);

/**
 * qp_attr_fill() - get the attributes to move a queue pair to INIT, RTR or RTS
 * @attr: in: qp_state, the target; out: all other attributes in @ret_mask
 * @with_access: include the peer's access rights and the P_Key, otherwise only set for INIT
 * @ret_mask: for ibv_modify_qp()
 *
 * Return: 0; -EINVAL if the attributes are not known yet.
 */
int qp_attr_fill(struct id *id, struct ibv_qp_attr *attr, bool with_access, int *ret_mask);

/** qp_qkey() - Q_Key of the id's datagram queue pair, which may not exist yet. */
uint32_t qp_qkey(struct id *id);

#endif
