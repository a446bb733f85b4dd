/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What rdma_getaddrinfo() finds, with the two kinds of failure apart. For rdma_getaddrinfo(), which
 * mixes them as the interface demands, and for lookup.c, which makes an event of it. What is known
 * of names comes from the C library, what is known of paths from ibacm.
 */
#ifndef LIB_NAMES_ADDRINFO_H
#define LIB_NAMES_ADDRINFO_H

#include <infiniband/ib.h>
#include <rdma/rdma_cma.h>

/**
 * addrinfo_find() - find what rdma_getaddrinfo() finds
 * @ret:     for rdma_freeaddrinfo(); untouched on failure
 * @ret_eai: 0, or the EAI_ code of the C library, whatever is returned then
 *
 * Blocks while a name server is asked. For EAI_SYSTEM the reason is in errno.
 *
 * Return: 0, -EINVAL if all three are NULL, -ENODEV, -ENOMEM, -EOPNOTSUPP, -ENOENT.
 */
int addrinfo_find(const char *node, const char *service, const struct rdma_addrinfo *hints,
		  struct rdma_addrinfo **ret, int *ret_eai);

/**
 * addrinfo_find_service() - find what RAI_SA asks for
 * @node:    must be NULL
 * @service: a service id or a service name
 * @flags:   of the hints
 *
 * Return: -EOPNOTSUPP for a @node, for RAI_DNS, and on an InfiniBand subnet; -EINVAL without
 * @service; -ENOENT if no port is on a subnet; or as device_list_load().
 */
int addrinfo_find_service(const char *node, const char *service, int flags);

/* In the hints, beside the RAI_ bits: path records are wanted, and no entry for InfiniBand. */
#define ADDRINFO_ROUTE_ONLY 0x01000000

/**
 * addrinfo_gid_address() - the socket address of a service at a GID
 * @port_space: 0 for any
 * @port:       host byte order, 0 for any
 *
 * Return: the address, with the default partition.
 */
struct sockaddr_ib addrinfo_gid_address(const union ibv_gid *gid, int port_space, uint16_t port);

/**
 * addrinfo_add_route() - add what ibacm knows, if it is there and knows anything
 * @list:  one entry that is not passive; one more may come in front of it
 * @flags: of the hints, whose RAI_NUMERICHOST and RAI_NOROUTE ask for haste
 *
 * Blocks for IBACM_TIMEOUT_MS at most. Want of memory is no error: the entry is good without.
 */
void addrinfo_add_route(struct rdma_addrinfo **list, int flags);

#endif
