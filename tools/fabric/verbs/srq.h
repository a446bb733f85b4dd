/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Shared receive queues as functions of struct verbs_context.
 */
#ifndef FABRIC_SRQ_H
#define FABRIC_SRQ_H

#include "tools/fabric/verbs/objects.h"

/**
 * srq_create_ex() - ibv_create_srq_ex() for XRC; other queues are created as by ibv_create_srq()
 */
struct ibv_srq *srq_create_ex(struct ibv_context *verbs, struct ibv_srq_init_attr_ex *attr);

#endif
