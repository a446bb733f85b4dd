/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What rdma_getaddrinfo() finds, with the two kinds of failure apart. For rdma_getaddrinfo(), which
 * mixes them as the interface demands, and for lookup.c, which makes an event of it.
 */
#ifndef LIB_ADDRINFO_H
#define LIB_ADDRINFO_H

#include <rdma/rdma_cma.h>

/**
 * addrinfo_find() - find what rdma_getaddrinfo() finds
 * @node:    as there
 * @service: as there
 * @hints:   as there
 * @ret:     for rdma_freeaddrinfo(); untouched on failure
 * @ret_eai: 0, or the EAI_ code of the C library, whatever is returned then
 *
 * Blocks while a name server is asked. For EAI_SYSTEM the reason is in errno.
 *
 * Return: 0, -EINVAL if all three are NULL, -ENODEV, -ENOMEM, -EOPNOTSUPP, -ENOENT.
 */
int addrinfo_find(const char *node, const char *service, const struct rdma_addrinfo *hints,
		  struct rdma_addrinfo **ret, int *ret_eai);

#endif
