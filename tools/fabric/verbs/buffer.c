/* SPDX-License-Identifier: BSD-2-Clause */
/* Buffers allocated by a device, of rdma-core 57 and later: any memory is suitable here. */
#include <errno.h>
#include <infiniband/verbs.h>
#include <stdlib.h>
#include <unistd.h>

struct ibv_buf {
	void *addr;
};

/* Not declared by headers of older releases. */
void *ibv_alloc_buf(struct ibv_pd *pd, size_t bytes, struct ibv_buf **ret);
void ibv_free_buf(struct ibv_buf *buf);
struct ibv_mr *ibv_reg_buf_mr(struct ibv_pd *pd, struct ibv_buf *buf, void *addr, size_t bytes,
			      int access);

void *ibv_alloc_buf(struct ibv_pd *pd, size_t bytes, struct ibv_buf **ret)
{
	struct ibv_buf *buf = malloc(sizeof(*buf));
	int err = ENOMEM;

	(void)pd;
	if (buf)
		err = posix_memalign(&buf->addr, (size_t)sysconf(_SC_PAGESIZE), bytes);
	if (err) {
		free(buf);
		errno = err;
		return NULL;
	}
	*ret = buf;
	return buf->addr;
}

void ibv_free_buf(struct ibv_buf *buf)
{
	free(buf->addr);
	free(buf);
}

struct ibv_mr *ibv_reg_buf_mr(struct ibv_pd *pd, struct ibv_buf *buf, void *addr, size_t bytes,
			      int access)
{
	(void)buf;
	return ibv_reg_mr(pd, addr, bytes, access);
}
