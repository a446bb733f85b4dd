/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The completion queues and channels of an id. All of them belong to the library, even if the
 * program stored them there, and are destroyed with the id's queue pair or shared receive queue:
 * see qp.c and srq.c.
 */
#ifndef LIB_VERBS_CQ_H
#define LIB_VERBS_CQ_H

#include <rdma/rdma_cma.h>
#include <stdint.h>

/**
 * cq_make() - create a completion queue with its own channel, for each direction that has none
 * @id:           attached to its device
 * @send_entries: size of the send queue; 0: none
 * @recv_entries: size of the receive queue; 0: none
 *
 * Return: 0 or -errno; those created by then stay in the id, for cq_drop().
 */
int cq_make(struct rdma_cm_id *id, uint32_t send_entries, uint32_t recv_entries);

/** cq_drop() - destroy all in the id; a shared one only once. */
void cq_drop(struct rdma_cm_id *id);

#endif
