/* SPDX-License-Identifier: BSD-2-Clause */
/* Registered memory: access checks and address translation. Locked. */
#ifndef FABRIC_MEMORY_H
#define FABRIC_MEMORY_H

#include "tools/fabric/verbs/objects.h"

/**
 * memory_find() - find the region of a local key, if the access to a range is allowed
 * @access: enum ibv_access_flags, all of which must have been granted
 *
 * Return: NULL for an unknown key, another protection domain, a range that is not inside, or
 * access that was not granted.
 */
struct fab_mr *memory_find(const struct fab_context *context, struct ibv_pd *pd, uint32_t key,
			   uint64_t addr, uint64_t bytes, unsigned int access);

/**
 * memory_find_remote() - likewise for a peer: find the region or window of a remote key
 * @srqn: of XRC: the shared receive queue whose protection domain applies
 */
struct fab_mr *memory_find_remote(const struct fab_qp *qp, uint32_t srqn, uint32_t rkey,
				  uint64_t addr, uint64_t bytes, unsigned int access);

/** memory_take_key() - assign new keys to a region or window. Return: 0 or -ENOMEM. */
int memory_take_key(struct fab_context *context, struct fab_mr *mr);

/** memory_drop_key() - invalidate the keys */
void memory_drop_key(struct fab_context *context, const struct fab_mr *mr);

/** memory_of_key() - look up a key, ignoring its eight variable bits; NULL if there is none */
struct fab_mr *memory_of_key(const struct fab_context *context, uint32_t key);

/** memory_contains() - return whether a range is entirely inside */
bool memory_contains(const struct fab_mr *mr, uint64_t addr, uint64_t bytes);

/** memory_at() - translate an address of the region to one of this process */
void *memory_at(const struct fab_mr *mr, uint64_t addr);

/** memory_use() - count a region in @users while it is registered */
void memory_use(struct ibv_mr *mr, unsigned int *users);

/** memory_advise() - ibv_advise_mr(). */
int memory_advise(struct ibv_pd *pd, enum ibv_advise_mr_advice advice, uint32_t flags,
		  struct ibv_sge *sge, uint32_t n_sge);

/** memory_load() - copy bytes of a region to @to. Return: false if some are not mapped. */
bool memory_load(const struct fab_mr *mr, uint64_t addr, void *to, size_t bytes);

/**
 * memory_store() - store bytes to a region, as for all writes of a device
 *
 * Stores each byte once, in order of addresses: a program may wait for the last byte to change,
 * then expect the others, and reuse the memory.
 *
 * Return: false if some are on demand, and not mapped or read-only.
 */
bool memory_store(const struct fab_mr *mr, uint64_t addr, const void *from, size_t bytes);

/**
 * memory_atomic() - execute an atomic on a region
 * @ret: the previous value
 *
 * Return: false if it is not mapped, or read-only.
 */
bool memory_atomic(const struct fab_mr *mr, const struct fab_packet *packet, uint64_t *ret);

/** memory_store_at() - as memory_store(), to memory that stays mapped */
void memory_store_at(void *at, const void *from, size_t bytes);

#endif
