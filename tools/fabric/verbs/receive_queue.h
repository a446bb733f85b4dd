/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Receives that wait for a message, of a queue pair or of a shared receive queue; locked.
 */
#ifndef FABRIC_RECEIVE_QUEUE_H
#define FABRIC_RECEIVE_QUEUE_H

#include "tools/fabric/verbs/objects.h"

/** receive_queue_init() - nothing is allocated before the first receive is posted. */
void receive_queue_init(struct fab_receive_queue *queue, uint32_t n_max, uint32_t max_sge);

/** receive_queue_append() - add one. Return: 0 or errno. */
int receive_queue_append(struct fab_receive_queue *queue, const struct ibv_recv_wr *wr);

/** receive_queue_resize() - for more or fewer receives. Return: 0; EINVAL if more wait; ENOMEM. */
int receive_queue_resize(struct fab_receive_queue *queue, uint32_t n_max);

/** receive_queue_reset() - empty it. */
void receive_queue_reset(struct fab_receive_queue *queue);

/** receive_queue_fini() - give its memory back. */
void receive_queue_fini(struct fab_receive_queue *queue);

/** receive_queue_first() - the oldest, or NULL; receive_queue_drop() takes it out. */
struct fab_receive *receive_queue_first(struct fab_receive_queue *queue);
void receive_queue_drop(struct fab_receive_queue *queue);

#endif
