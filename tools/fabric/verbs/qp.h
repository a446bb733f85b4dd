/* SPDX-License-Identifier: BSD-2-Clause */
/* Queue pair functions behind the tables of verbs.h. */
#ifndef FABRIC_QP_H
#define FABRIC_QP_H

#include "tools/fabric/verbs/objects.h"

/** qp_create_ex() - struct verbs_context.create_qp_ex */
struct ibv_qp *qp_create_ex(struct ibv_context *verbs, struct ibv_qp_init_attr_ex *attr);

/** post_send() - struct ibv_context_ops.post_send. Return: 0, or errno with *bad set. */
int post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad);

/**
 * post_batch() - post the requests that ibv_wr_*() collected, or none. Return: 0 or errno.
 *
 * Of a flush, wr.atomic.compare_add is the number of bytes, and swap has bits of enum fab_flush.
 */
int post_batch(struct ibv_qp *qp, struct ibv_send_wr *wr);

/** post_bind() - bind a window of type 1, which gets a new key. Return: 0 or errno. */
int post_bind(struct ibv_qp *qp, struct ibv_mw *mw, struct ibv_mw_bind *bind);

/** post_opcodes() - operations of a type of queue pairs: bitmap of enum ibv_wr_opcode */
unsigned int post_opcodes(enum ibv_qp_type type);

/** post_start() - send or flush posted requests, depending on the state; locked */
void post_start(struct fab_qp *qp);

/** post_recv() - struct ibv_context_ops.post_recv. Return: as post_send(). */
int post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);

/** post_srq_recv() - struct ibv_context_ops.post_srq_recv. Return: as post_send(). */
int post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);

/**
 * batch_new() - set ibv_wr_start() and its like, and allocate their data
 * @ops: operations that the program requested, IBV_QP_EX_WITH_*
 *
 * Return: NULL on ENOMEM.
 */
struct fab_batch *batch_new(struct ibv_qp_ex *qp, uint64_t ops);

/** batch_free() - free the data of a batch; NULL is allowed */
void batch_free(struct fab_batch *batch);

#endif
