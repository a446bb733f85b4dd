/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A GID, and the IPv4 addresses among them: RoCE v2 names a port with an IPv4 address by the
 * IPv4-mapped IPv6 address (IBTA vol. 1, annex A17).
 */
#ifndef MAD_GID_H
#define MAD_GID_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define GID_IPV4_AT 12

struct mad_gid {
	uint8_t raw[16];
};

/** mad_gid_of_ipv4() - the GID of an address of four bytes in network order. */
static inline struct mad_gid mad_gid_of_ipv4(const void *addr)
{
	struct mad_gid gid = {
		.raw = {[10] = 0xff, [11] = 0xff}
	};

	memcpy(&gid.raw[GID_IPV4_AT], addr, sizeof(gid.raw) - GID_IPV4_AT);
	return gid;
}

/** mad_gid_is_ipv4() - is it one of an IPv4 address, which is then at GID_IPV4_AT? */
static inline bool mad_gid_is_ipv4(const struct mad_gid *gid)
{
	static const uint8_t prefix[GID_IPV4_AT] = { [10] = 0xff, [11] = 0xff };

	return !memcmp(gid->raw, prefix, sizeof(prefix));
}

#endif
