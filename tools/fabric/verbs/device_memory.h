/* SPDX-License-Identifier: BSD-2-Clause */
/* Device memory, as functions of struct verbs_context. */
#ifndef FABRIC_DEVICE_MEMORY_H
#define FABRIC_DEVICE_MEMORY_H

#include "tools/fabric/verbs/objects.h"

/** device_memory_alloc() - ibv_alloc_dm(), and device_memory_free() ibv_free_dm(). */
struct ibv_dm *device_memory_alloc(struct ibv_context *verbs, struct ibv_alloc_dm_attr *attr);
int device_memory_free(struct ibv_dm *dm);

/** device_memory_reg() - ibv_reg_dm_mr(): addresses of the region start at 0 */
struct ibv_mr *device_memory_reg(struct ibv_pd *pd, struct ibv_dm *dm, uint64_t offset,
				 size_t bytes, unsigned int access);

#endif
