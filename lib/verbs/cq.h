/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The completion queues and channels that sit in an id. What is there belongs to the library,
 * whoever put it there, and goes with the id's queue pair or shared receive queue: see qp.c and
 * srq.c.
 */
#ifndef LIB_VERBS_CQ_H
#define LIB_VERBS_CQ_H

#include <rdma/rdma_cma.h>
#include <stdint.h>

/**
 * cq_make() - a completion queue with a channel of its own, for each direction that has none
 * @id:           shown its device
 * @send_entries: room in the queue for sends; 0: none is made
 * @recv_entries: room in that for receives; 0: none is made
 *
 * Return: 0 or -errno; what was made until then stays in the id, for cq_drop().
 */
int cq_make(struct rdma_cm_id *id, uint32_t send_entries, uint32_t recv_entries);

/** cq_drop() - destroy all that is in the id; what serves both directions once. */
void cq_drop(struct rdma_cm_id *id);

#endif
