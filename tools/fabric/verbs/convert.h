/* SPDX-License-Identifier: BSD-2-Clause */
/* Functions of libibverbs that its installed headers do not declare, but stock librdmacm calls. */
#ifndef FABRIC_CONVERT_H
#define FABRIC_CONVERT_H

#include <infiniband/sa.h>
#include <infiniband/verbs.h>
#include <rdma/ib_user_sa.h>
#include <rdma/ib_user_verbs.h>

/** ibv_copy_ah_attr_from_kern() - convert an address from the kernel's form */
void ibv_copy_ah_attr_from_kern(struct ibv_ah_attr *to, struct ib_uverbs_ah_attr *from);

/** ibv_copy_qp_attr_from_kern() - convert attributes from the kernel's form */
void ibv_copy_qp_attr_from_kern(struct ibv_qp_attr *to, struct ib_uverbs_qp_attr *from);

/** ibv_copy_path_rec_from_kern() - convert a path record from the kernel's form; below, to it */
void ibv_copy_path_rec_from_kern(struct ibv_sa_path_rec *to, struct ib_user_path_rec *from);
void ibv_copy_path_rec_to_kern(struct ib_user_path_rec *to, struct ibv_sa_path_rec *from);

/** ibv_dontfork_range() - keep memory from child processes; ibv_dofork_range() reverts that */
int ibv_dontfork_range(void *base, size_t size);
int ibv_dofork_range(void *base, size_t size);

/** ibv_get_sysfs_path() - the path of sysfs */
const char *ibv_get_sysfs_path(void);

/**
 * ibv_read_sysfs_file() - read a file of sysfs. Return: number of bytes; -1: not supported here.
 */
int ibv_read_sysfs_file(const char *dir, const char *file, char *ret, size_t bytes);

#endif
