/* SPDX-License-Identifier: BSD-2-Clause */
/* Validation of the attributes of an address handle or a connected queue pair. */
#ifndef FABRIC_ADDRESS_H
#define FABRIC_ADDRESS_H

#include "tools/fabric/verbs/objects.h"

/** address_check() - validate the attributes of an address. Return: 0 or errno. */
int address_check(struct fab_context *context, const struct ibv_ah_attr *attr,
		  union ibv_gid *ret_sgid);

/**
 * address_hold() - hold an entry of the GID table, and release the previous one
 * @attr: has the entry; NULL: none
 *
 * As in the kernel, a GID that is removed leaves a hole while a queue pair uses it: its index is
 * not reused.
 */
void address_hold(struct fab_device *device, struct fab_held *held, const struct ibv_ah_attr *attr);

#endif
