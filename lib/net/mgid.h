/* SPDX-License-Identifier: BSD-2-Clause */
/* Multicast GIDs of IP multicast groups. Pure. */
#ifndef LIB_NET_MGID_H
#define LIB_NET_MGID_H

#include "lib/net/addr.h"

/**
 * mgid_roce() - MGID of a group on RoCE (IBTA vol. 1, annexes A16 and A17)
 * @addr: AF_INET or AF_INET6
 * @v2:   true for RoCE v2, where an IPv4 group is ::ffff:a.b.c.d; on v1 it is ff0e::ffff:a.b.c.d.
 *        An IPv6 group is its address on both.
 *
 * Return: the MGID; all zero for a loopback address, which is no group, as in the kernel's
 * connection manager.
 */
struct mad_gid mgid_roce(const union addr *addr, bool v2);

/**
 * mgid_ipoib() - MGID of a group on InfiniBand (RFC 4391, 4)
 * @addr:  AF_INET or AF_INET6
 * @scope: 4 bits, as in the interface's broadcast group
 * @pkey:  P_Key of the interface, in host byte order
 * @udp:   for RDMA_PS_UDP, whose groups differ from those of IP over InfiniBand
 *
 * Return: the MGID. An IPv6 group that begins with ff1x:a01b is the administrator's, and returned
 * unchanged; a wildcard or loopback address is all zero, for which the subnet administrator
 * chooses.
 */
struct mad_gid mgid_ipoib(const union addr *addr, uint8_t scope, uint16_t pkey, bool udp);

#endif
