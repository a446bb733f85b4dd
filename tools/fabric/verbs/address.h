/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The attributes of an address handle or of a connected queue pair, checked and resolved to a port.
 */
#ifndef FABRIC_ADDRESS_H
#define FABRIC_ADDRESS_H

#include "tools/fabric/verbs/objects.h"

/** address_check() - are these attributes of an address any good? Return: 0 or errno. */
int address_check(struct fab_context *context, const struct ibv_ah_attr *attr,
		  union ibv_gid *ret_sgid);

/** address_owner() - which port is at an address. Return: 0, or EHOSTUNREACH. */
int address_owner(struct fab_context *context, const struct ibv_ah_attr *attr,
		  struct fab_owner *ret);

/**
 * address_hold() - take an entry of the GID table, and give back the one before
 * @attr: whose entry; NULL: none
 *
 * As with the kernel, a GID that goes leaves a hole while a queue pair uses it, and no other takes
 * its index.
 */
void address_hold(struct fab_device *device, struct fab_held *held, const struct ibv_ah_attr *attr);

#endif
