/* SPDX-License-Identifier: BSD-2-Clause */
/* Posted receives, of a queue pair or of a shared receive queue; locked. */
#ifndef FABRIC_RECEIVE_QUEUE_H
#define FABRIC_RECEIVE_QUEUE_H

#include "tools/fabric/verbs/objects.h"

/** receive_queue_init() - initialize; memory is allocated with the first receive */
void receive_queue_init(struct fab_receive_queue *queue, uint32_t n_max, uint32_t max_sge);

/** receive_queue_append() - append a receive. Return: 0 or errno. */
int receive_queue_append(struct fab_receive_queue *queue, const struct ibv_recv_wr *wr);

/** receive_queue_resize() - change the capacity. Return: 0; EINVAL if more are posted; ENOMEM. */
int receive_queue_resize(struct fab_receive_queue *queue, uint32_t n_max);

/** receive_queue_reset() - remove all receives */
void receive_queue_reset(struct fab_receive_queue *queue);

/** receive_queue_fini() - free the memory */
void receive_queue_fini(struct fab_receive_queue *queue);

/** receive_queue_first() - the oldest receive, or NULL; receive_queue_drop() removes it */
struct fab_receive *receive_queue_first(struct fab_receive_queue *queue);
void receive_queue_drop(struct fab_receive_queue *queue);

#endif
