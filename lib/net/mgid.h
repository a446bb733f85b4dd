/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Multicast GIDs: from the IP address of a group to what its datagrams are addressed to. Pure.
 * Joining asks.
 */
#ifndef LIB_NET_MGID_H
#define LIB_NET_MGID_H

#include "lib/net/addr.h"

/**
 * mgid_roce() - MGID of a group on RoCE (IBTA vol. 1, annexes A16 and A17)
 * @addr: AF_INET or AF_INET6
 * @v2:   whether the GID type is RoCE v2: there an IPv4 group is ::ffff:a.b.c.d, on v1 it is
 *        ff0e::ffff:a.b.c.d. An IPv6 group is its address on both.
 *
 * As with the kernel's connection manager a loopback address stands for no group: all zero.
 */
struct mad_gid mgid_roce(const union addr *addr, bool v2);

/**
 * mgid_ipoib() - MGID of a group on InfiniBand (RFC 4391, 4)
 * @addr:  AF_INET or AF_INET6
 * @scope: 4 bits, that of the interface's broadcast group
 * @pkey:  P_Key of the interface, host byte order
 * @udp:   for RDMA_PS_UDP, whose groups are others than those of IP over InfiniBand itself
 *
 * An IPv6 group that begins with ff1x:a01b is the administrator's, and taken as it is; a wildcard
 * or loopback address is zero, which lets the subnet administrator choose.
 */
struct mad_gid mgid_ipoib(const union addr *addr, uint8_t scope, uint16_t pkey, bool udp);

#endif
