/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The handle table: which descriptors of the process are sockets of ours. Two levels, so that a
 * process with few sockets needs little memory; each entry has its own lock.
 */
#ifndef LIB_RSOCKET_TABLE_H
#define LIB_RSOCKET_TABLE_H

#include "lib/rsocket/rsock.h"

#define TABLE_FD_MAX 65535

/**
 * table_add() - from now on, rs->fd leads to this handle
 *
 * The table keeps the caller's reference, until table_take().
 *
 * Return: 0; -ENOMEM, as stock, for a descriptor that is too large.
 */
int table_add(struct rsock *rs);

/** table_get() - Return: the handle, for rsock_put(); NULL if it is not ours. */
struct rsock *table_get(int fd);

/** table_take() - take it out. Return: the handle with the table's reference, or NULL. */
struct rsock *table_take(int fd);

/** table_after_fork() - in a forked child: release the locks, forget the parent's sockets. */
void table_after_fork(void);

#endif
