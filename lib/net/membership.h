/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memberships of this process in multicast groups of IP: what makes the kernel speak IGMP or MLD,
 * and the interface accept the group's packets. Joining and leaving ask, from any thread.
 *
 * A membership is held by a socket, of which each takes only so many (net.ipv4.igmp_max_memberships
 * for IPv4); there are as many sockets as it needs. The kernel counts what the processes of a host
 * want, and forgets what a dead one wanted.
 */
#ifndef LIB_NET_MEMBERSHIP_H
#define LIB_NET_MEMBERSHIP_H

#include "lib/net/addr.h"

/**
 * membership_join() - be a member of a group on an interface; counted
 * @ifindex: the interface
 * @group:   a multicast address; the port does not matter
 *
 * Each needs a membership_leave().
 *
 * Return: 0; -ENODEV if the interface is gone; -EINVAL for an address that is no group's; -EMFILE,
 * -ENOMEM.
 */
int membership_join(unsigned int ifindex, const union addr *group);

/** membership_leave() - the opposite; harmless if this process is no member. */
void membership_leave(unsigned int ifindex, const union addr *group);

/** membership_after_fork() - a child is no member of its parent's groups. */
void membership_after_fork(void);

#endif
