/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Queue pairs as verbs.h's tables of functions have them.
 */
#ifndef FABRIC_QP_H
#define FABRIC_QP_H

#include "tools/fabric/verbs/objects.h"

/** qp_create_ex() - of struct verbs_context. */
struct ibv_qp *qp_create_ex(struct ibv_context *verbs, struct ibv_qp_init_attr_ex *attr);

/** post_send() - of struct ibv_context_ops. Return: 0, or errno with *bad set. */
int post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad);

/** post_bind() - bind a window of type 1, which has a new key then. Return: 0 or errno. */
int post_bind(struct ibv_qp *qp, struct ibv_mw *mw, struct ibv_mw_bind *bind);

/** post_opcodes() - what a type of queue pairs can do: bits by their enum ibv_wr_opcode. */
unsigned int post_opcodes(enum ibv_qp_type type);

/** post_start() - do with what is posted what its state wants: send it, or flush it; locked. */
void post_start(struct fab_qp *qp);

/** post_recv() - of struct ibv_context_ops. Return: as post_send(). */
int post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);

/** post_srq_recv() - of struct ibv_context_ops. Return: as post_send(). */
int post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);

/** batch_new() - what ibv_wr_start() and its like need; sets them. Return: NULL without memory. */
struct fab_batch *batch_new(struct ibv_qp_ex *qp);

/** batch_free() - NULL is allowed. */
void batch_free(struct fab_batch *batch);

#endif
