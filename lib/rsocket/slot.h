/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Small pieces of registered memory, many to a page: a page of its own for 32 bytes would be a
 * tenth of an idle socket's memory. Not a slab of base/, because these pages must hold nothing
 * else: registered memory is not copied when the process forks.
 */
#ifndef LIB_RSOCKET_SLOT_H
#define LIB_RSOCKET_SLOT_H

#define SLOT_BYTES 64

/** slot_new() - Return: SLOT_BYTES bytes of zeros for slot_free(), or NULL; any thread. */
void *slot_new(void);
void slot_free(void *slot);

/** slot_after_fork() - in a forked child: the parent's pages may not be there. */
void slot_after_fork(void);

#endif
