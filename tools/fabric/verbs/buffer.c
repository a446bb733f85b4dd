/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Registration as of rdma-core 57 and later: by a struct of attributes, and of buffers that a
 * device allocates; any memory is suitable here.
 */
#include <errno.h>
#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

struct ibv_buf {
	struct ibv_pd *pd; /* the only one that may register it */
	char *addr;
	size_t bytes;
};

/*
 * The layout of struct ibv_mr_init_attr, which older headers lack. A caller's may lack the last
 * members, unless its mask has their bits.
 */
struct mr_attr {
	size_t bytes;
	int access;
	uint64_t mask; /* MR_* of what follows */
	uint64_t iova;
	void *addr;
	int fd;
	uint64_t fd_offset;
	void *dma_handle;
	struct ibv_buf *buf;
};

enum {
	MR_IOVA = 1 << 0,
	MR_ADDR = 1 << 1,
	MR_FD = 1 << 2,
	MR_BUF = 1 << 5,
};

/* Not declared by headers of older releases. */
struct ibv_mr_init_attr;
struct ibv_mr *ibv_reg_mr_ex(struct ibv_pd *pd, struct ibv_mr_init_attr *attr);
void *ibv_alloc_buf(struct ibv_pd *pd, size_t bytes, struct ibv_buf **ret);
int ibv_export_buf_dmabuf_fd(struct ibv_buf *buf);
void ibv_free_buf(struct ibv_buf *buf);
struct ibv_mr *ibv_reg_buf_mr(struct ibv_pd *pd, struct ibv_buf *buf, void *addr, size_t bytes,
			      int access);

void *ibv_alloc_buf(struct ibv_pd *pd, size_t bytes, struct ibv_buf **ret)
{
	struct ibv_buf *buf = malloc(sizeof(*buf));
	void *addr = NULL;
	int err = ENOMEM;

	if (buf)
		err = posix_memalign(&addr, (size_t)sysconf(_SC_PAGESIZE), bytes);
	if (err) {
		free(buf);
		errno = err;
		return NULL;
	}
	*buf = (struct ibv_buf){ .pd = pd, .addr = addr, .bytes = bytes };
	*ret = buf;
	return addr;
}

int ibv_export_buf_dmabuf_fd(struct ibv_buf *buf)
{
	(void)buf;
	errno = ENODATA; /* it is ordinary memory */
	return -1;
}

void ibv_free_buf(struct ibv_buf *buf)
{
	free(buf->addr);
	free(buf);
}

static bool buf_has_range(const struct ibv_buf *buf, const void *addr, size_t bytes)
{
	uintptr_t offset = (uintptr_t)addr - (uintptr_t)buf->addr;

	return offset <= buf->bytes && bytes <= buf->bytes - offset;
}

static int check_attr(const struct ibv_pd *pd, const struct mr_attr *attr)
{
	/* Either memory or a descriptor is registered. */
	if (!(attr->mask & MR_ADDR) == !(attr->mask & MR_FD))
		return EINVAL;
	if (attr->mask & ~(uint64_t)(MR_IOVA | MR_ADDR | MR_BUF))
		return EOPNOTSUPP;
	if (attr->mask & MR_BUF &&
	    (attr->buf->pd != pd || !buf_has_range(attr->buf, attr->addr, attr->bytes)))
		return EINVAL;
	return 0;
}

static struct ibv_mr *reg_by_attr(struct ibv_pd *pd, const struct mr_attr *attr)
{
	int err = check_attr(pd, attr);

	if (err) {
		errno = err;
		return NULL;
	}
	return ibv_reg_mr_iova2(pd, attr->addr, attr->bytes,
				attr->mask & MR_IOVA ? attr->iova : (uintptr_t)attr->addr,
				(unsigned int)attr->access);
}

struct ibv_mr *ibv_reg_mr_ex(struct ibv_pd *pd, struct ibv_mr_init_attr *attr)
{
	return reg_by_attr(pd, (const void *)attr);
}

struct ibv_mr *ibv_reg_buf_mr(struct ibv_pd *pd, struct ibv_buf *buf, void *addr, size_t bytes,
			      int access)
{
	return reg_by_attr(pd, &(struct mr_attr){ .bytes = bytes,
						  .access = access,
						  .mask = MR_ADDR | MR_BUF,
						  .addr = addr,
						  .buf = buf });
}
