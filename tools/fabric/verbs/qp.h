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

/** receive_queue_init() - nothing is allocated before the first receive is posted. */
void receive_queue_init(struct fab_receive_queue *queue, uint32_t n_max, uint32_t max_sge);

/** receive_queue_reset() - empty it. */
void receive_queue_reset(struct fab_receive_queue *queue);

/** receive_queue_fini() - give its memory back. */
void receive_queue_fini(struct fab_receive_queue *queue);

/** receive_queue_first() - the oldest, or NULL; receive_queue_drop() takes it out. */
struct fab_receive *receive_queue_first(struct fab_receive_queue *queue);
void receive_queue_drop(struct fab_receive_queue *queue);

/** address_check() - are these attributes of an address any good? Return: 0 or errno. */
int address_check(struct fab_context *context, const struct ibv_ah_attr *attr,
		  union ibv_gid *ret_sgid);

/** address_owner() - which port is at an address. Return: 0, or EHOSTUNREACH. */
int address_owner(struct fab_context *context, const struct ibv_ah_attr *attr,
		  struct fab_owner *ret);

#endif
