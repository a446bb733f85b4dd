/* SPDX-License-Identifier: BSD-2-Clause */
/* InfiniBand partitions, as derived from an IP over InfiniBand interface or an AF_IB address. */
#ifndef LIB_PATH_PARTITION_H
#define LIB_PATH_PARTITION_H

#include "lib/net/netlink.h"

struct partition {
	uint16_t pkey;
	uint8_t scope;
	struct mad_gid broadcast; /* MGID of the IP over InfiniBand broadcast group */
};

/** partition_pkey() - P_Key of an IP over InfiniBand interface, in host byte order */
uint16_t partition_pkey(const struct net_iface *iface);

/** partition_scope() - multicast scope of an IP over InfiniBand interface */
uint8_t partition_scope(const struct net_iface *iface);

/**
 * partition_of() - the partition of an address
 * @local:   an AF_IB address, which contains its P_Key, or an IP address of the interface
 * @ifindex: an IP over InfiniBand interface
 *
 * Return: 0; -EADDRNOTAVAIL: not an IP over InfiniBand interface.
 */
int partition_of(const union addr *local, unsigned int ifindex, struct partition *ret);

#endif
