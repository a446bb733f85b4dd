/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Functions that the soft fabric's device does not support: they concern memory of other devices
 * and driver-specific files. Each returns an error.
 */
#include <errno.h>
#include <infiniband/verbs.h>

#include "tools/fabric/verbs/convert.h"

static void *refuse_call(void)
{
	errno = EOPNOTSUPP;
	return NULL;
}

struct ibv_mr *ibv_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset, size_t length, uint64_t iova,
				 int fd, int access)
{
	(void)pd;
	(void)offset;
	(void)length;
	(void)iova;
	(void)fd;
	(void)access;
	return refuse_call();
}

int ibv_resolve_eth_l2_from_gid(struct ibv_context *context, struct ibv_ah_attr *attr,
				uint8_t eth_mac[ETHERNET_LL_SIZE], uint16_t *vid)
{
	(void)context;
	(void)attr;
	(void)eth_mac;
	(void)vid;
	errno = EOPNOTSUPP;
	return -1;
}

/* fork() does not affect registered memory: only this process accesses it, not hardware. */
int ibv_fork_init(void)
{
	return 0;
}

int ibv_dontfork_range(void *base, size_t size)
{
	(void)base;
	(void)size;
	return 0;
}

int ibv_dofork_range(void *base, size_t size)
{
	(void)base;
	(void)size;
	return 0;
}

enum ibv_fork_status ibv_is_fork_initialized(void)
{
	return IBV_FORK_UNNEEDED;
}

const char *ibv_get_sysfs_path(void)
{
	return "/sys";
}

int ibv_read_sysfs_file(const char *dir, const char *file, char *ret, size_t bytes)
{
	(void)dir;
	(void)file;
	(void)ret;
	(void)bytes;
	errno = ENOENT;
	return -1;
}
