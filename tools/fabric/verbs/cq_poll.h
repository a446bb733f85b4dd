/* SPDX-License-Identifier: BSD-2-Clause */
/* The functions that read a completion queue, behind the tables and pointers of verbs.h. */
#ifndef FABRIC_CQ_POLL_H
#define FABRIC_CQ_POLL_H

#include "tools/fabric/verbs/objects.h"

/** cq_poll() - struct ibv_context_ops.poll_cq */
int cq_poll(struct ibv_cq *cq, int num_entries, struct ibv_wc *wc);

/** cq_req_notify() - struct ibv_context_ops.req_notify_cq */
int cq_req_notify(struct ibv_cq *cq, int solicited_only);

/** cq_create_ex() - struct verbs_context.create_cq_ex */
struct ibv_cq_ex *cq_create_ex(struct ibv_context *verbs, struct ibv_cq_init_attr_ex *attr);

#endif
