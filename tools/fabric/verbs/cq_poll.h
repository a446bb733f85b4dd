/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The ways to read a completion queue that verbs.h calls through tables and pointers.
 */
#ifndef FABRIC_CQ_POLL_H
#define FABRIC_CQ_POLL_H

#include "tools/fabric/verbs/objects.h"

/** cq_poll() - of struct ibv_context_ops. */
int cq_poll(struct ibv_cq *cq, int num_entries, struct ibv_wc *wc);

/** cq_req_notify() - of struct ibv_context_ops. */
int cq_req_notify(struct ibv_cq *cq, int solicited_only);

/** cq_create_ex() - of struct verbs_context. */
struct ibv_cq_ex *cq_create_ex(struct ibv_context *verbs, struct ibv_cq_init_attr_ex *attr);

#endif
