/* SPDX-License-Identifier: BSD-2-Clause */
/* Maps groups to multicast GIDs: see mgid.h. */
#include "lib/net/mgid.h"

#include <string.h>

#define SIGNATURE_V4  0x401b
#define SIGNATURE_V6  0x601b
#define SIGNATURE_UDP 0x01 /* in place of the signature's low byte */

/* As in the kernel's connection manager: 127.0.0.1 is no group, but 0.1.2.3 is. */
static bool is_not_group(const union addr *addr)
{
	return addr_is_zero(addr) || addr_is_loopback(addr);
}

struct mad_gid mgid_roce(const union addr *addr, bool v2)
{
	struct mad_gid gid = { 0 };

	if (is_not_group(addr))
		return gid;
	gid = addr_to_gid(addr);
	if (addr->sa.sa_family == AF_INET && !v2) {
		gid.raw[0] = 0xff;
		gid.raw[1] = 0x0e;
	}
	return gid;
}

/* Transient, created by the administrator: ff1x:a01b. */
static bool is_verbatim(const union addr *addr)
{
	const uint8_t *raw = addr->in6.sin6_addr.s6_addr;

	return addr->sa.sa_family == AF_INET6 && raw[0] == 0xff && raw[1] >> 4 == 1 &&
	       raw[2] == 0xa0 && raw[3] == 0x1b;
}

static void put16(uint8_t *at, uint16_t value)
{
	at[0] = (uint8_t)(value >> 8);
	at[1] = (uint8_t)value;
}

/* Stores the low 28 bits of an IPv4 group, the low 80 of an IPv6 group. */
static void put_group(struct mad_gid *gid, const union addr *addr)
{
	if (addr->sa.sa_family == AF_INET) {
		memcpy(gid->raw + 12, &addr->in4.sin_addr, 4);
		gid->raw[12] &= 0x0f;
	} else {
		memcpy(gid->raw + 6, addr->in6.sin6_addr.s6_addr + 6, 10);
	}
}

struct mad_gid mgid_ipoib(const union addr *addr, uint8_t scope, uint16_t pkey, bool udp)
{
	struct mad_gid gid = { 0 };

	if (is_not_group(addr))
		return gid;
	if (is_verbatim(addr))
		return addr_to_gid(addr);
	gid.raw[0] = 0xff;
	gid.raw[1] = 0x10 | (scope & 0x0f);
	put16(gid.raw + 2, addr->sa.sa_family == AF_INET ? SIGNATURE_V4 : SIGNATURE_V6);
	if (udp)
		gid.raw[3] = SIGNATURE_UDP;
	put16(gid.raw + 4, pkey);
	put_group(&gid, addr);
	return gid;
}
