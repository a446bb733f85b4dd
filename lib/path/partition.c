/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * InfiniBand partitions: see partition.h.
 */
#include "lib/path/partition.h"

#include <endian.h>
#include <errno.h>

#define BROADCAST_GID_AT 4 /* in a broadcast link address */
#define SCOPE_AT	 1 /* of a GID, the low half */
#define PKEY_AT		 4
#define SCOPE_LOCAL	 2

uint16_t partition_pkey(const struct net_iface *iface)
{
	const uint8_t *at = iface->hw_broadcast + NET_IPOIB_PKEY_AT;

	return (uint16_t)(at[0] << 8 | at[1]);
}

uint8_t partition_scope(const struct net_iface *iface)
{
	return iface->hw_broadcast[BROADCAST_GID_AT + SCOPE_AT] & 0x0f;
}

static int partition_of_iface(unsigned int ifindex, struct partition *ret)
{
	struct net_iface iface;

	if (net_iface_get(ifindex, &iface) || iface.hw_bytes != NET_IPOIB_HW_BYTES)
		return -EADDRNOTAVAIL;
	memcpy(&ret->broadcast, iface.hw_broadcast + BROADCAST_GID_AT, sizeof(ret->broadcast));
	ret->pkey = partition_pkey(&iface);
	ret->scope = partition_scope(&iface);
	return 0;
}

int partition_of(const union addr *local, unsigned int ifindex, struct partition *ret)
{
	/* RFC 4391, 4: ff12:401b:<P_Key>::ffff:ffff */
	static const struct mad_gid broadcast = { { 0xff, 0x12, 0x40, 0x1b, [12] = 0xff, 0xff, 0xff,
						    0xff } };
	uint16_t pkey = be16toh(local->ib.sib_pkey);

	if (!addr_is_ib(local))
		return partition_of_iface(ifindex, ret);
	ret->pkey = pkey ? pkey : UINT16_MAX;
	ret->scope = SCOPE_LOCAL;
	ret->broadcast = broadcast;
	ret->broadcast.raw[PKEY_AT] = (uint8_t)(ret->pkey >> 8);
	ret->broadcast.raw[PKEY_AT + 1] = (uint8_t)ret->pkey;
	return 0;
}
