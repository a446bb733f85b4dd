/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Extended reliable connections, IBTA vol. 1, annex A14: domains, and which shared receive queue a
 * target's message goes to. A domain is one process's: no other joins it by its file.
 *
 * The functions that take a queue pair are for all types: what is not a target of XRC has a
 * protection domain, a shared receive queue and a completion queue of its own. They are locked.
 */
#ifndef FABRIC_XRC_H
#define FABRIC_XRC_H

#include "tools/fabric/verbs/objects.h"

/** xrc_open() - ibv_open_xrcd(), and xrc_close() ibv_close_xrcd(). */
struct ibv_xrcd *xrc_open(struct ibv_context *verbs, struct ibv_xrcd_init_attr *attr);
int xrc_close(struct ibv_xrcd *xrcd);

/** xrc_srq_number() - ibv_get_srq_num(). */
int xrc_srq_number(struct ibv_srq *srq, uint32_t *ret);

/** xrc_add() - a new shared receive queue is one of a domain, and has a number; locked. */
void xrc_add(struct fab_srq *srq, struct ibv_xrcd *xrcd, struct ibv_cq *cq);

/** xrc_remove() - it ends; nothing for one that is not of XRC; locked. */
void xrc_remove(struct fab_srq *srq);

/** xrc_srq() - where a message that names this queue finds its receive; NULL: the queue pair. */
struct fab_srq *xrc_srq(const struct fab_qp *qp, uint32_t srqn);

/** xrc_pd() - whose keys a message may use, and its receive has; NULL: none, that queue is gone. */
struct ibv_pd *xrc_pd(const struct fab_qp *qp, uint32_t srqn);

/** xrc_receive_cq() - where its receive completes; NULL: nowhere, that queue is gone. */
struct fab_cq *xrc_receive_cq(const struct fab_qp *qp, uint32_t srqn);

#endif
