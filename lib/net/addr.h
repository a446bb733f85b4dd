/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Socket addresses: the questions that binding, resolving and listening ask of them. Pure.
 */
#ifndef LIB_NET_ADDR_H
#define LIB_NET_ADDR_H

#include <infiniband/ib.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>

#include "mad/cm_msg.h"

union addr {
	struct sockaddr sa;
	struct sockaddr_in in4;
	struct sockaddr_in6 in6;
	struct sockaddr_ib
		ib; /* its GID is its address, the low 16 bits of its service id its port */
};

/** addr_store() - to where a program sees it; @ret is zero, or was last written by this */
static inline void addr_store(const union addr *addr, struct sockaddr_storage *ret)
{
	memcpy(ret, addr, sizeof(*addr));
}

/** addr_load() - what addr_store(), or a program, has put there */
static inline union addr addr_load(const struct sockaddr_storage *from)
{
	union addr addr;

	memcpy(&addr, from, sizeof(addr));
	return addr;
}

/**
 * addr_copy() - copy an address of a family that the library routes
 * @sa:  AF_INET, AF_INET6 or AF_IB
 * @ret: cleared, then filled
 *
 * Return: 0, -EINVAL for NULL or another family.
 */
int addr_copy(const struct sockaddr *sa, union addr *ret);

/** addr_bytes() - size of the sockaddr for its family; 0 for an unknown one. */
socklen_t addr_bytes(const struct sockaddr *sa);

/** addr_set_any() - the wildcard address of a family, port 0. */
void addr_set_any(union addr *addr, sa_family_t family);

/** addr_is_ib() - a GID and a service id, AF_IB */
bool addr_is_ib(const union addr *addr);

/** addr_is_zero() - 0.0.0.0, :: or an empty GID */
bool addr_is_zero(const union addr *addr);

/** addr_is_loopback() - 127.0.0.0/8, or ::1 also as a GID */
bool addr_is_loopback(const union addr *addr);

/**
 * addr_is_any() - names no interface, so binds to no device
 *
 * The kernel's connection manager counts 0.0.0.0/8, 127.0.0.0/8, :: and ::1.
 */
bool addr_is_any(const union addr *addr);

/** addr_is_link_local() - IPv6 fe80::/10 */
bool addr_is_link_local(const union addr *addr);

/** addr_is_multicast() - IPv4 class D or IPv6 ff00::/8 */
bool addr_is_multicast(const union addr *addr);

/** addr_same_ip() - same family and address, whatever the port; link-local compares scopes. */
bool addr_same_ip(const union addr *a, const union addr *b);

/** addr_port() - the port in host byte order. */
uint16_t addr_port(const union addr *addr);

/** addr_set_port() - @port in host byte order. */
void addr_set_port(union addr *addr, uint16_t port);

/** addr_to_gid() - GID of an address: IPv4 becomes ::ffff:a.b.c.d, AF_IB has one. */
struct mad_gid addr_to_gid(const union addr *addr);

/**
 * addr_pack() - the address as 16 bytes, without its port; IPv4 in the last four of them
 * @ret: zeros
 *
 * Return: its version: 4, 6, or AF_IB for a GID; 0 for another family.
 */
uint8_t addr_pack(const union addr *addr, uint8_t ret[16]);

/**
 * addr_unpack() - from what addr_pack() has made
 * @port:  in host byte order
 * @scope: of a link-local address
 *
 * Return: 0; -EINVAL for another version.
 */
int addr_unpack(uint8_t version, const uint8_t from[16], uint16_t port, unsigned int scope,
		union addr *ret);

/**
 * addr_settle_sid() - which port space an AF_IB address is in, and its service id in full
 * @addr: AF_IB; what its mask leaves open is filled in, except for the port
 * @ps:   RDMA_PS_* of the id. RDMA_PS_IB has the services of RDMA_PS_TCP and RDMA_PS_UDP, too.
 *
 * Return: the port space; -EPROTONOSUPPORT if the service id is in none that the id may use.
 */
int addr_settle_sid(union addr *addr, uint16_t ps);

/** addr_scope() - interface index that a link-local address is pinned to, or 0. */
unsigned int addr_scope(const union addr *addr);

#define ADDR_STR_BYTES 72

/** addr_str() - "192.0.2.1:7471", "[fe80::1%2]:7471"; for messages. Return: @buf. */
const char *addr_str(const union addr *addr, char buf[ADDR_STR_BYTES]);

#endif
