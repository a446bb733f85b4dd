/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The implementation of rdma_getaddrinfo(), with its two kinds of errors kept apart:
 * rdma_getaddrinfo() merges them, as its interface requires, and lookup.c makes an event of them.
 * Names are resolved by the C library, paths by ibacm.
 */
#ifndef LIB_NAMES_ADDRINFO_H
#define LIB_NAMES_ADDRINFO_H

#include <infiniband/ib.h>
#include <rdma/rdma_cma.h>

/**
 * addrinfo_find() - resolve as rdma_getaddrinfo() does
 * @cancel_state: of the program, see api.h: the thread may be cancelled while it waits
 * @ret:     for rdma_freeaddrinfo(); untouched on failure
 * @ret_eai: 0, or the EAI_ code of the C library, which takes precedence over the return value
 *
 * Blocks while it queries a name server or a subnet administrator. With EAI_SYSTEM, errno is set.
 * RAI_SA needs the engine.
 *
 * Return: 0; -EINVAL if all three are NULL; -ENODEV; -ENOMEM; with RAI_SA -EOPNOTSUPP for a @node
 * or RAI_DNS, -EINVAL without @service, or as service_find().
 */
int addrinfo_find(const char *node, const char *service, const struct rdma_addrinfo *hints,
		  int cancel_state, struct rdma_addrinfo **ret, int *ret_eai);

/* In the hints, in addition to RAI_ bits: add path records, but no entry for InfiniBand. */
#define ADDRINFO_ROUTE_ONLY 0x01000000

/**
 * addrinfo_gid_address() - the socket address of a service at a GID
 * @port_space: 0 for any
 * @port:       in host byte order, 0 for any
 *
 * Return: the address, in the default partition.
 */
struct sockaddr_ib addrinfo_gid_address(const union ibv_gid *gid, int port_space, uint16_t port);

/**
 * addrinfo_add_route() - add source, paths and an InfiniBand entry from ibacm, if available
 * @list:         one entry that is not passive; an entry may be added in front
 * @flags:        of the hints; with RAI_NUMERICHOST and RAI_NOROUTE only cached paths are used
 * @cancel_state: of the program: the thread may be cancelled while it waits; the list is not freed
 *
 * Blocks for at most IBACM_TIMEOUT_MS. Out of memory is no error: the entry is valid without.
 */
void addrinfo_add_route(struct rdma_addrinfo **list, int flags, int cancel_state);

#endif
