/* SPDX-License-Identifier: BSD-2-Clause */
/* Predicates and conversions of socket addresses. Pure. */
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

/**
 * addr_store() - store an address for the program; @ret is zeroed, or from an earlier addr_store()
 */
static inline void addr_store(const union addr *addr, struct sockaddr_storage *ret)
{
	memcpy(ret, addr, sizeof(*addr));
}

/** addr_load() - load an address from addr_store() or from a program */
static inline union addr addr_load(const struct sockaddr_storage *from)
{
	union addr addr;

	memcpy(&addr, from, sizeof(addr));
	return addr;
}

/**
 * addr_copy() - copy an address of a supported family
 * @sa:  AF_INET, AF_INET6 or AF_IB
 * @ret: zeroed, then filled in
 *
 * Return: 0; -EINVAL for NULL or another family.
 */
int addr_copy(const struct sockaddr *sa, union addr *ret);

/** addr_bytes() - size of the sockaddr of its family; 0 if unknown. */
socklen_t addr_bytes(const struct sockaddr *sa);

/** addr_set_any() - set to the wildcard address of a family, port 0. */
void addr_set_any(union addr *addr, sa_family_t family);

/** addr_is_ib() - true for AF_IB, which has a GID and a service id */
bool addr_is_ib(const union addr *addr);

/** addr_is_zero() - true for 0.0.0.0, :: or an empty GID */
bool addr_is_zero(const union addr *addr);

/** addr_is_loopback() - true for 127.0.0.0/8, and for ::1, also as a GID */
bool addr_is_loopback(const union addr *addr);

/**
 * addr_is_any() - true if the address identifies no interface, so that it binds to no device
 *
 * As in the kernel's connection manager: 0.0.0.0/8, 127.0.0.0/8, :: and ::1.
 */
bool addr_is_any(const union addr *addr);

/** addr_is_link_local() - true for IPv6 fe80::/10 */
bool addr_is_link_local(const union addr *addr);

/** addr_is_multicast() - true for IPv4 class D or IPv6 ff00::/8 */
bool addr_is_multicast(const union addr *addr);

/** addr_same_ip() - true for the same family and address, any port; compares link-local scopes. */
bool addr_same_ip(const union addr *a, const union addr *b);

/** addr_port() - the port in host byte order. */
uint16_t addr_port(const union addr *addr);

/** addr_set_port() - set the port, @port in host byte order. */
void addr_set_port(union addr *addr, uint16_t port);

/** addr_to_gid() - GID of an address: IPv4 maps to ::ffff:a.b.c.d, AF_IB contains one. */
struct mad_gid addr_to_gid(const union addr *addr);

/**
 * addr_pack() - store the address, without its port, as 16 bytes; IPv4 in the last four
 * @ret: zeroed
 *
 * Return: the version: 4, 6, or AF_IB for a GID; 0 for another family.
 */
uint8_t addr_pack(const union addr *addr, uint8_t ret[16]);

/**
 * addr_unpack() - restore an address from addr_pack()
 * @port:  in host byte order
 * @scope: of a link-local address
 *
 * Return: 0; -EINVAL for another version.
 */
int addr_unpack(uint8_t version, const uint8_t from[16], uint16_t port, unsigned int scope,
		union addr *ret);

/**
 * addr_settle_sid() - determine the port space of an AF_IB address, and complete its service id
 * @addr: AF_IB; bits that its mask leaves open are filled in, except the port
 * @ps:   RDMA_PS_* of the id. RDMA_PS_IB includes services of RDMA_PS_TCP and RDMA_PS_UDP.
 *
 * Return: the port space; -EPROTONOSUPPORT if the service id is in none that the id may use.
 */
int addr_settle_sid(union addr *addr, uint16_t ps);

/** addr_scope() - scope (interface index) of a link-local address, or 0. */
unsigned int addr_scope(const union addr *addr);

#define ADDR_STR_BYTES 72

/** addr_str() - text for messages: "192.0.2.1:7471", "[fe80::1%2]:7471". Return: @buf. */
const char *addr_str(const union addr *addr, char buf[ADDR_STR_BYTES]);

#endif
