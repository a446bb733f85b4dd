/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Thread and parent domains, as functions of struct verbs_context.
 */
#ifndef FABRIC_DOMAIN_H
#define FABRIC_DOMAIN_H

#include "tools/fabric/verbs/objects.h"

/** domain_alloc_parent() - ibv_alloc_parent_domain(); its allocators are never called. */
struct ibv_pd *domain_alloc_parent(struct ibv_context *verbs,
				   struct ibv_parent_domain_init_attr *attr);

/**
 * domain_new() - allocate a protection domain, or another one that stands for @root
 * @td: its thread domain, or NULL
 */
struct ibv_pd *domain_new(struct ibv_context *verbs, struct ibv_pd *root, struct fab_td *td);

/** domain_alloc_td() - ibv_alloc_td(), and domain_dealloc_td() ibv_dealloc_td(). */
struct ibv_td *domain_alloc_td(struct ibv_context *verbs, struct ibv_td_init_attr *attr);
int domain_dealloc_td(struct ibv_td *td);

#endif
