/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Extended reliable connections, IBTA vol. 1, annex A14: domains, and the shared receive queue of a
 * target's message. A domain belongs to one process: others cannot join it through its file.
 *
 * The functions with a queue pair accept all types: other types use their own protection domain,
 * shared receive queue and completion queue. They are locked.
 */
#ifndef FABRIC_XRC_H
#define FABRIC_XRC_H

#include "tools/fabric/verbs/objects.h"

/** xrc_open() - ibv_open_xrcd(), and xrc_close() ibv_close_xrcd(). */
struct ibv_xrcd *xrc_open(struct ibv_context *verbs, struct ibv_xrcd_init_attr *attr);
int xrc_close(struct ibv_xrcd *xrcd);

/** xrc_srq_number() - ibv_get_srq_num(). */
int xrc_srq_number(struct ibv_srq *srq, uint32_t *ret);

/** xrc_add() - add a new shared receive queue to a domain, and number it; locked */
void xrc_add(struct fab_srq *srq, struct ibv_xrcd *xrcd, struct ibv_cq *cq);

/** xrc_remove() - remove a shared receive queue, if it is for XRC; locked */
void xrc_remove(struct fab_srq *srq);

/** xrc_srq() - the shared receive queue for a message; NULL: the queue pair's own receives */
struct fab_srq *xrc_srq(const struct fab_qp *qp, uint32_t srqn);

/** xrc_pd() - the protection domain for a message and its receive; NULL if that queue is gone */
struct ibv_pd *xrc_pd(const struct fab_qp *qp, uint32_t srqn);

/** xrc_receive_cq() - the completion queue of the receive; NULL if that queue is gone */
struct fab_cq *xrc_receive_cq(const struct fab_qp *qp, uint32_t srqn);

#endif
