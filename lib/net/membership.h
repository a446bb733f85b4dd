/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memberships of this process in IP multicast groups: they make the kernel send IGMP or MLD, and
 * the interface accept the group's packets. Thread-safe.
 *
 * Memberships belong to sockets, each of which can hold a limited number
 * (net.ipv4.igmp_max_memberships for IPv4), so there are as many sockets as needed. The kernel
 * counts the memberships of all processes, and drops those of a dead one.
 */
#ifndef LIB_NET_MEMBERSHIP_H
#define LIB_NET_MEMBERSHIP_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "lib/net/addr.h"

#define MGID_BYTES 16

/**
 * membership_join() - join a group on an interface; counted
 * @ifindex: the interface
 * @group:   a multicast address; its port is ignored
 *
 * Call membership_leave() for each.
 *
 * Return: 0; -ENODEV if the interface is gone; -EINVAL if the address is no group; -EMFILE,
 * -ENOMEM.
 */
int membership_join(unsigned int ifindex, const union addr *group);

/** membership_leave() - leave a group; no effect if it was not joined. */
void membership_leave(unsigned int ifindex, const union addr *group);

/**
 * net_kernel_has_group() - return whether the kernel's IP over InfiniBand is in a group
 *
 * Not in other network namespaces. True if it cannot be found out.
 */
bool net_kernel_has_group(const uint8_t mgid[MGID_BYTES]);

/** net_lists_group() - likewise, by the lines of /proc/net/dev_mcast; @in is closed */
bool net_lists_group(FILE *in, const uint8_t mgid[MGID_BYTES]);

/** membership_after_fork() - in a forked child: drop the parent's memberships. */
void membership_after_fork(void);

#endif
