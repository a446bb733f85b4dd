/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * InfiniBand partitions: what an IP over InfiniBand interface, or an AF_IB address, says of the one
 * that it is in.
 */
#ifndef LIB_PATH_PARTITION_H
#define LIB_PATH_PARTITION_H

#include "lib/net/netlink.h"

struct partition {
	uint16_t pkey;
	uint8_t scope;
	struct mad_gid broadcast; /* MGID of the group that IP over InfiniBand broadcasts to */
};

/** partition_pkey() - P_Key of an IP over InfiniBand interface, host byte order */
uint16_t partition_pkey(const struct net_iface *iface);

/** partition_scope() - scope of the groups of an IP over InfiniBand interface */
uint8_t partition_scope(const struct net_iface *iface);

/**
 * partition_of() - the partition of an address
 * @local:   an AF_IB address, which has its P_Key, or an IP address of the interface
 * @ifindex: an IP over InfiniBand interface
 *
 * Return: 0; -EADDRNOTAVAIL: no IP over InfiniBand interface.
 */
int partition_of(const union addr *local, unsigned int ifindex, struct partition *ret);

#endif
