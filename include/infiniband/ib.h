/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The socket address of native InfiniBand (AF_IB), for programs that address a GID and a service id
 * instead of an IP address and a port. Same layout as in the kernel: 48 bytes, all in network byte
 * order except family and scope id.
 */
#ifndef _RDMA_IB_H
#define _RDMA_IB_H

#include <linux/types.h>
#include <endian.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

#ifndef AF_IB
#define AF_IB 27
#endif
#ifndef PF_IB
#define PF_IB AF_IB
#endif

/* A GID: 16 bytes, accessible in four widths. */
struct ib_addr {
	union {
		__u8 uib_addr8[16];
		__be16 uib_addr16[8];
		__be32 uib_addr32[4];
		__be64 uib_addr64[2];
	} ib_u;
#define sib_addr8	  ib_u.uib_addr8
#define sib_addr16	  ib_u.uib_addr16
#define sib_addr32	  ib_u.uib_addr32
#define sib_addr64	  ib_u.uib_addr64
#define sib_raw		  ib_u.uib_addr8
#define sib_subnet_prefix ib_u.uib_addr64[0]
#define sib_interface_id  ib_u.uib_addr64[1]
};

/**
 * ib_addr_any() - test for the wildcard address
 * @a: address
 *
 * Return: 1 if all bytes are 0, else 0.
 */
static inline int ib_addr_any(const struct ib_addr *a)
{
	return (a->sib_addr64[0] | a->sib_addr64[1]) == 0;
}

/**
 * ib_addr_loopback() - test for the loopback address
 * @a: address
 *
 * Return: 1 if it is ::1, else 0.
 */
static inline int ib_addr_loopback(const struct ib_addr *a)
{
	return a->sib_addr64[0] == 0 && a->sib_addr32[2] == 0 && a->sib_addr16[6] == 0 &&
	       a->sib_addr8[14] == 0 && a->sib_addr8[15] == 1;
}

/**
 * ib_addr_set() - compose an address of four words
 * @addr: filled in
 * @w1:   bytes 0 to 3, in network byte order
 * @w2:   bytes 4 to 7
 * @w3:   bytes 8 to 11
 * @w4:   bytes 12 to 15
 */
static inline void ib_addr_set(struct ib_addr *addr, __be32 w1, __be32 w2, __be32 w3, __be32 w4)
{
	addr->sib_addr32[0] = w1;
	addr->sib_addr32[1] = w2;
	addr->sib_addr32[2] = w3;
	addr->sib_addr32[3] = w4;
}

/**
 * ib_addr_cmp() - compare two addresses
 * @a1: first address
 * @a2: second address
 *
 * Return: as memcmp().
 */
static inline int ib_addr_cmp(const struct ib_addr *a1, const struct ib_addr *a2)
{
	return memcmp(a1, a2, sizeof(*a1));
}

/**
 * struct sockaddr_ib - address of an InfiniBand service
 * @sib_family:   AF_IB
 * @sib_pkey:     partition key
 * @sib_flowinfo: traffic class (bits 27..20) and flow label (19..0)
 * @sib_addr:     GID
 * @sib_sid:      service id
 * @sib_sid_mask: valid bits of the service id
 * @sib_scope_id: as sin6_scope_id
 */
struct sockaddr_ib {
	unsigned short int sib_family;
	__be16 sib_pkey;
	__be32 sib_flowinfo;
	struct ib_addr sib_addr;
	__be64 sib_sid;
	__be64 sib_sid_mask;
	__u64 sib_scope_id;
};

#ifdef __cplusplus
}
#endif

#endif /* _RDMA_IB_H */
