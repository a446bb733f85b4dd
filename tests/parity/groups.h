/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared by the multicast scenarios: groups, and their members. */
#ifndef PARITY_GROUPS_H
#define PARITY_GROUPS_H

#include "steps.h"

#define MANY_GROUPS 50

/**
 * group() - a group of this scenario
 * @s:      the scene
 * @number: which, less than 64
 *
 * Return: its address with port 0, in one of eight static buffers, used in turn.
 */
struct sockaddr *group(const struct scene *s, unsigned int number);

/** is_member() - return whether this host's interface is a member, by IGMP or MLD */
bool is_member(const struct scene *s, unsigned int number);

/** show_member() - print is_member(). */
void show_member(const struct scene *s, unsigned int number);

/** await_no_member() - wait until is_member() is false; gives up after PATIENCE_MS. */
void await_no_member(const struct scene *s, unsigned int number);

/** send_only() - the arguments of a join that does not receive. */
struct rdma_cm_join_mc_attr_ex send_only(struct sockaddr *group);

/** bound_datagram_id() - an id for datagrams, bound to this host's address. */
struct rdma_cm_id *bound_datagram_id(struct scene *s, const char *label);

#endif
