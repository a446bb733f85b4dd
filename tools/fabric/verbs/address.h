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

#endif
