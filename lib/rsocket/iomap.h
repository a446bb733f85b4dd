/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Buffers that a peer writes to by offset: riomap(), riounmap() and riowrite(). Our buffers have
 * entries in the peer's table, which are written before the next data; the peer's buffers have
 * entries in ours.
 */
#ifndef LIB_RSOCKET_IOMAP_H
#define LIB_RSOCKET_IOMAP_H

#include "lib/rsocket/stream.h"

/** iomap_add() - riomap(). Return: the offset, or -errno. */
off_t iomap_add(struct stream *s, void *buf, size_t bytes, int prot, off_t offset);

/** iomap_remove() - riounmap(). Return: 0 or -errno. */
int iomap_remove(struct stream *s, const void *buf, size_t bytes);

/**
 * iomap_find() - find the address in the peer's memory of an offset
 *
 * Return: an entry whose size extends to the end of the buffer; 0 bytes if there is none.
 */
struct rs_entry iomap_find(const struct stream *s, uint64_t offset);

/**
 * iomap_update_peer() - write the entries of the peer's table that have changed
 * @flags: MSG_DONTWAIT
 *
 * The caller has the token to send, and holds the lock, which is released to wait.
 *
 * Return: 0 or -errno.
 */
int iomap_update_peer(struct stream *s, int flags, struct cm_time deadline);

/** iomap_free_all() - free all buffers of a closed socket */
void iomap_free_all(struct stream *s);

#endif
