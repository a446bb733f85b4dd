/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Small pieces of registered memory, many to a page: a page for each piece of 32 bytes would be a
 * tenth of an idle socket's memory. base/slab.h is not used, because these pages must hold nothing
 * else: registered memory is not copied when the process forks.
 */
#ifndef LIB_RSOCKET_SLOT_H
#define LIB_RSOCKET_SLOT_H

#define SLOT_BYTES 64

/**
 * slot_new() - allocate SLOT_BYTES zeroed bytes, for slot_free(); any thread. Return: NULL on
 * ENOMEM.
 */
void *slot_new(void);
void slot_free(void *slot);

/** slot_after_fork() - in a forked child: forget the parent's pages, which may not exist */
void slot_after_fork(void);

#endif
