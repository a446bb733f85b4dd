/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * GIDs, and how RoCE v2 maps IPv4 addresses to them: as IPv4-mapped IPv6 addresses (IBTA vol. 1,
 * annex A17).
 */
#ifndef MAD_GID_H
#define MAD_GID_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/hash.h"

#define GID_IPV4_AT 12

struct mad_gid {
	uint8_t raw[16];
};

/** mad_gid_of_ipv4() - GID of an IPv4 address, which is four bytes in network byte order. */
static inline struct mad_gid mad_gid_of_ipv4(const void *addr)
{
	struct mad_gid gid = { .raw = { [10] = 0xff, [11] = 0xff } };

	memcpy(&gid.raw[GID_IPV4_AT], addr, sizeof(gid.raw) - GID_IPV4_AT);
	return gid;
}

/** mad_gid_is_ipv4() - true if the GID maps an IPv4 address, which is at GID_IPV4_AT. */
static inline bool mad_gid_is_ipv4(const struct mad_gid *gid)
{
	static const uint8_t prefix[GID_IPV4_AT] = { [10] = 0xff, [11] = 0xff };

	return !memcmp(gid->raw, prefix, sizeof(prefix));
}

/**
 * mad_gid_hash() - hash a GID and an id (or 0) to @bits bits
 *
 * Depends on hash_set_secret(), as users choose the GIDs of peers. Uses the highest bits of a
 * product: only they depend on all bits of the id.
 */
static inline unsigned int mad_gid_hash(const struct mad_gid *gid, uint32_t id, unsigned int bits)
{
	const uint64_t hash = hash_bytes(gid->raw, sizeof(gid->raw)) ^ id;

	return (unsigned int)((hash * UINT64_C(0x9e3779b97f4a7c15)) >> (64 - bits));
}

#endif
