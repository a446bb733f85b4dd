/* SPDX-License-Identifier: BSD-2-Clause */
/* Predicates and conversions of IPv4 and IPv6 socket addresses: see addr.h. */
#include "lib/net/addr.h"

#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <rdma/rdma_cma.h>
#include <stdio.h>
#include <string.h>

#define PORT_MASK UINT64_C(0xffff) /* of a service id */
#define IPV4_AT	  12		   /* of 16 bytes */

socklen_t addr_bytes(const struct sockaddr *sa)
{
	switch (sa->sa_family) {
	case AF_INET:
		return sizeof(struct sockaddr_in);
	case AF_INET6:
		return sizeof(struct sockaddr_in6);
	case AF_IB:
		return sizeof(struct sockaddr_ib);
	}
	return 0;
}

int addr_copy(const struct sockaddr *sa, union addr *ret)
{
	socklen_t bytes = sa ? addr_bytes(sa) : 0;

	if (!bytes)
		return -EINVAL;
	memset(ret, 0, sizeof(*ret));
	memcpy(ret, sa, bytes);
	return 0;
}

void addr_set_any(union addr *addr, sa_family_t family)
{
	memset(addr, 0, sizeof(*addr));
	addr->sa.sa_family = family;
}

/* An AF_INET address in host byte order. */
static uint32_t ipv4_of(const union addr *addr)
{
	return ntohl(addr->in4.sin_addr.s_addr);
}

bool addr_is_ib(const union addr *addr)
{
	return addr->sa.sa_family == AF_IB;
}

bool addr_is_zero(const union addr *addr)
{
	if (addr_is_ib(addr))
		return ib_addr_any(&addr->ib.sib_addr);
	if (addr->sa.sa_family == AF_INET)
		return ipv4_of(addr) == INADDR_ANY;
	return addr->sa.sa_family == AF_INET6 && IN6_IS_ADDR_UNSPECIFIED(&addr->in6.sin6_addr);
}

bool addr_is_loopback(const union addr *addr)
{
	if (addr_is_ib(addr))
		return ib_addr_loopback(&addr->ib.sib_addr);
	if (addr->sa.sa_family == AF_INET)
		return ipv4_of(addr) >> 24 == IN_LOOPBACKNET;
	return addr->sa.sa_family == AF_INET6 && IN6_IS_ADDR_LOOPBACK(&addr->in6.sin6_addr);
}

bool addr_is_any(const union addr *addr)
{
	if (addr->sa.sa_family == AF_INET && ipv4_of(addr) >> 24 == 0)
		return true;
	return addr_is_zero(addr) || addr_is_loopback(addr);
}

bool addr_is_link_local(const union addr *addr)
{
	return addr->sa.sa_family == AF_INET6 && IN6_IS_ADDR_LINKLOCAL(&addr->in6.sin6_addr);
}

bool addr_is_multicast(const union addr *addr)
{
	if (addr->sa.sa_family == AF_INET)
		return IN_MULTICAST(ipv4_of(addr));
	return addr->sa.sa_family == AF_INET6 && IN6_IS_ADDR_MULTICAST(&addr->in6.sin6_addr);
}

bool addr_same_ip(const union addr *a, const union addr *b)
{
	if (a->sa.sa_family != b->sa.sa_family)
		return false;
	if (a->sa.sa_family == AF_INET)
		return a->in4.sin_addr.s_addr == b->in4.sin_addr.s_addr;
	if (addr_is_ib(a))
		return ib_addr_cmp(&a->ib.sib_addr, &b->ib.sib_addr) == 0;
	if (a->sa.sa_family != AF_INET6)
		return false;
	return IN6_ARE_ADDR_EQUAL(&a->in6.sin6_addr, &b->in6.sin6_addr) &&
	       addr_scope(a) == addr_scope(b);
}

uint16_t addr_port(const union addr *addr)
{
	if (addr->sa.sa_family == AF_INET)
		return ntohs(addr->in4.sin_port);
	if (addr_is_ib(addr))
		return (uint16_t)(be64toh(addr->ib.sib_sid) & PORT_MASK);
	return addr->sa.sa_family == AF_INET6 ? ntohs(addr->in6.sin6_port) : 0;
}

void addr_set_port(union addr *addr, uint16_t port)
{
	if (addr->sa.sa_family == AF_INET)
		addr->in4.sin_port = htons(port);
	else if (addr->sa.sa_family == AF_INET6)
		addr->in6.sin6_port = htons(port);
	else if (addr_is_ib(addr))
		addr->ib.sib_sid = htobe64((be64toh(addr->ib.sib_sid) & ~PORT_MASK) | port);
}

int addr_settle_sid(union addr *addr, uint16_t ps)
{
	static const uint16_t spaces[] = { RDMA_PS_IB, RDMA_PS_TCP, RDMA_PS_UDP };
	uint64_t mask = be64toh(addr->ib.sib_sid_mask);
	uint64_t sid = be64toh(addr->ib.sib_sid) & mask;
	size_t i;

	for (i = 0; i < sizeof(spaces) / sizeof(spaces[0]); i++) {
		if (ps != RDMA_PS_IB && ps != spaces[i])
			continue;
		if ((sid & ~PORT_MASK) != ((uint64_t)spaces[i] << 16 & mask))
			continue;
		sid = (uint64_t)spaces[i] << 16 | (sid & PORT_MASK);
		addr->ib.sib_sid = htobe64(sid);
		addr->ib.sib_sid_mask = ~UINT64_C(0);
		return spaces[i];
	}
	return -EPROTONOSUPPORT;
}

struct mad_gid addr_to_gid(const union addr *addr)
{
	struct mad_gid gid = mad_gid_of_ipv4(&addr->in4.sin_addr);

	if (addr_is_ib(addr))
		memcpy(gid.raw, &addr->ib.sib_addr, sizeof(gid.raw));
	else if (addr->sa.sa_family == AF_INET6)
		memcpy(gid.raw, &addr->in6.sin6_addr, sizeof(gid.raw));
	return gid;
}

uint8_t addr_pack(const union addr *addr, uint8_t ret[16])
{
	switch (addr->sa.sa_family) {
	case AF_INET:
		memcpy(ret + IPV4_AT, &addr->in4.sin_addr, sizeof(addr->in4.sin_addr));
		return 4;
	case AF_INET6:
		memcpy(ret, &addr->in6.sin6_addr, sizeof(addr->in6.sin6_addr));
		return 6;
	case AF_IB:
		memcpy(ret, &addr->ib.sib_addr, sizeof(addr->ib.sib_addr));
		return AF_IB;
	}
	return 0;
}

int addr_unpack(uint8_t version, const uint8_t from[16], uint16_t port, unsigned int scope,
		union addr *ret)
{
	switch (version) {
	case 4:
		addr_set_any(ret, AF_INET);
		memcpy(&ret->in4.sin_addr, from + IPV4_AT, sizeof(ret->in4.sin_addr));
		break;
	case 6:
		addr_set_any(ret, AF_INET6);
		memcpy(&ret->in6.sin6_addr, from, sizeof(ret->in6.sin6_addr));
		if (addr_is_link_local(ret))
			ret->in6.sin6_scope_id = scope;
		break;
	case AF_IB:
		addr_set_any(ret, AF_IB);
		memcpy(&ret->ib.sib_addr, from, sizeof(ret->ib.sib_addr));
		break;
	default:
		return -EINVAL;
	}
	addr_set_port(ret, port);
	return 0;
}

unsigned int addr_scope(const union addr *addr)
{
	return addr_is_link_local(addr) ? addr->in6.sin6_scope_id : 0;
}

const char *addr_str(const union addr *addr, char buf[ADDR_STR_BYTES])
{
	char ip[INET6_ADDRSTRLEN];
	char scope[12] = "";

	switch (addr->sa.sa_family) {
	case AF_INET:
		inet_ntop(AF_INET, &addr->in4.sin_addr, ip, sizeof(ip));
		snprintf(buf, ADDR_STR_BYTES, "%s:%u", ip, addr_port(addr));
		break;
	case AF_INET6:
		inet_ntop(AF_INET6, &addr->in6.sin6_addr, ip, sizeof(ip));
		if (addr_scope(addr))
			snprintf(scope, sizeof(scope), "%%%u", addr_scope(addr));
		snprintf(buf, ADDR_STR_BYTES, "[%s%s]:%u", ip, scope, addr_port(addr));
		break;
	case AF_IB:
		inet_ntop(AF_INET6, &addr->ib.sib_addr, ip, sizeof(ip));
		snprintf(buf, ADDR_STR_BYTES, "gid %s:%u", ip, addr_port(addr));
		break;
	default:
		snprintf(buf, ADDR_STR_BYTES, "family %d", addr->sa.sa_family);
	}
	return buf;
}
