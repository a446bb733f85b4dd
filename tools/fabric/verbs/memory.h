/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Registered memory: which accesses are allowed, and where an address is. Locked.
 */
#ifndef FABRIC_MEMORY_H
#define FABRIC_MEMORY_H

#include "tools/fabric/verbs/objects.h"

/**
 * memory_find() - the region that a local key stands for, if all of a range may be accessed so
 * @access: enum ibv_access_flags, all of which must have been granted
 *
 * Return: NULL for an unknown key, another protection domain, a range that is not inside, access
 * that was not granted, or memory on demand that is not there.
 */
struct fab_mr *memory_find(const struct fab_context *context, struct ibv_pd *pd, uint32_t key,
			   uint64_t addr, uint64_t bytes, unsigned int access);

/**
 * memory_find_remote() - the same for a peer's access: the region or the window of a remote key
 * @srqn: of XRC: the shared receive queue whose protection domain it is about
 */
struct fab_mr *memory_find_remote(const struct fab_qp *qp, uint32_t srqn, uint32_t rkey,
				  uint64_t addr, uint64_t bytes, unsigned int access);

/** memory_take_key() - new keys for a region or a window. Return: 0 or -ENOMEM. */
int memory_take_key(struct fab_context *context, struct fab_mr *mr);

/** memory_drop_key() - its keys stand for nothing any more. */
void memory_drop_key(struct fab_context *context, const struct fab_mr *mr);

/** memory_of_key() - what has a key, but for the eight bits that change; or NULL. */
struct fab_mr *memory_of_key(const struct fab_context *context, uint32_t key);

/** memory_contains() - is all of a range inside? */
bool memory_contains(const struct fab_mr *mr, uint64_t addr, uint64_t bytes);

/** memory_at() - where an address of the region is in this process. */
void *memory_at(const struct fab_mr *mr, uint64_t addr);

/** memory_use() - count a region in @users for as long as it is registered. */
void memory_use(struct ibv_mr *mr, unsigned int *users);

/** memory_advise() - ibv_advise_mr(). */
int memory_advise(struct ibv_pd *pd, enum ibv_advise_mr_advice advice, uint32_t flags,
		  struct ibv_sge *sge, uint32_t n_sge);

/**
 * memory_store() - bring bytes into a program's memory, as all must come that a device writes there
 *
 * Each is stored once, and none before one at a lower address: a program may wait for the last byte
 * to change, then find the others there, and use the place for something else.
 */
void memory_store(void *at, const void *from, size_t bytes);

#endif
