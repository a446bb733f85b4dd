/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Posting with ibv_wr_start() and its like: requests are collected, and posted as one list by
 * ibv_wr_complete().
 */
#include <errno.h>
#include <stdlib.h>

#include "tools/fabric/verbs/qp.h"

struct work {
	struct ibv_send_wr wr;
	struct ibv_sge sge[FAB_SGE_MAX];
	char inline_data[FAB_INLINE_MAX];
};

struct fab_batch {
	struct work **work;
	uint32_t n, n_max;
	int err;
};

static struct fab_batch *batch_of(struct ibv_qp_ex *ex)
{
	return container_of(ex, struct fab_qp, ex)->batch;
}

static pthread_mutex_t *lock_of(struct ibv_qp_ex *ex)
{
	return &container_of(ex, struct fab_qp, ex)->batch_lock;
}

/* No other thread may add to the list: ibv_wr_post(3). */
static void wr_start(struct ibv_qp_ex *ex)
{
	pthread_mutex_lock(lock_of(ex));
	batch_of(ex)->n = 0;
	batch_of(ex)->err = 0;
}

static struct work *grow_batch(struct fab_batch *batch)
{
	struct work **more = realloc(batch->work, (batch->n_max + 1) * sizeof(*more));

	if (!more)
		return NULL;
	batch->work = more;
	more[batch->n_max] = calloc(1, sizeof(struct work));
	return more[batch->n_max] ? more[batch->n_max++] : NULL;
}

/* The first error is that of the list. */
static void fail_batch(struct ibv_qp_ex *ex, int err)
{
	struct fab_batch *batch = batch_of(ex);

	if (!batch->err)
		batch->err = err;
}

/*
 * As with mlx5, operations of the type of queue pair may be used that were not asked for. Return:
 * the next work request; NULL with the error stored.
 */
static struct ibv_send_wr *add_work(struct ibv_qp_ex *ex, enum ibv_wr_opcode opcode)
{
	struct fab_batch *batch = batch_of(ex);
	struct work *work;

	if (!(post_opcodes(ex->qp_base.qp_type) & 1u << opcode)) {
		fail_batch(ex, EOPNOTSUPP);
		return NULL;
	}
	work = batch->n < batch->n_max ? batch->work[batch->n] : grow_batch(batch);
	if (!work) {
		fail_batch(ex, ENOMEM);
		return NULL;
	}
	batch->n++;
	memset(&work->wr, 0, sizeof(work->wr));
	work->wr.wr_id = ex->wr_id;
	work->wr.send_flags = ex->wr_flags;
	work->wr.opcode = opcode;
	work->wr.sg_list = work->sge;
	return &work->wr;
}

static struct work *last_work(struct ibv_qp_ex *ex)
{
	struct fab_batch *batch = batch_of(ex);

	if (!batch->n)
		fail_batch(ex, EINVAL);
	return batch->n ? batch->work[batch->n - 1] : NULL;
}

static void wr_rdma(struct ibv_qp_ex *ex, enum ibv_wr_opcode opcode, uint32_t rkey, uint64_t addr,
		    __be32 imm)
{
	struct ibv_send_wr *wr = add_work(ex, opcode);

	if (!wr)
		return;
	wr->wr.rdma.rkey = rkey;
	wr->wr.rdma.remote_addr = addr;
	wr->imm_data = imm;
}

static void wr_rdma_read(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t addr)
{
	wr_rdma(ex, IBV_WR_RDMA_READ, rkey, addr, 0);
}

static void wr_rdma_write(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t addr)
{
	wr_rdma(ex, IBV_WR_RDMA_WRITE, rkey, addr, 0);
}

static void wr_rdma_write_imm(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t addr, __be32 imm)
{
	wr_rdma(ex, IBV_WR_RDMA_WRITE_WITH_IMM, rkey, addr, imm);
}

static void wr_atomic(struct ibv_qp_ex *ex, enum ibv_wr_opcode opcode, uint32_t rkey, uint64_t addr,
		      uint64_t compare_add, uint64_t swap)
{
	struct ibv_send_wr *wr = add_work(ex, opcode);

	if (!wr)
		return;
	wr->wr.atomic.rkey = rkey;
	wr->wr.atomic.remote_addr = addr;
	wr->wr.atomic.compare_add = compare_add;
	wr->wr.atomic.swap = swap;
}

static void wr_atomic_cmp_swp(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t addr, uint64_t compare,
			      uint64_t swap)
{
	wr_atomic(ex, IBV_WR_ATOMIC_CMP_AND_SWP, rkey, addr, compare, swap);
}

static void wr_atomic_fetch_add(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t addr, uint64_t more)
{
	wr_atomic(ex, IBV_WR_ATOMIC_FETCH_AND_ADD, rkey, addr, more, 0);
}

static void wr_send(struct ibv_qp_ex *ex)
{
	add_work(ex, IBV_WR_SEND);
}

static void wr_send_imm(struct ibv_qp_ex *ex, __be32 imm)
{
	struct ibv_send_wr *wr = add_work(ex, IBV_WR_SEND_WITH_IMM);

	if (wr)
		wr->imm_data = imm;
}

static void wr_send_inv(struct ibv_qp_ex *ex, uint32_t rkey)
{
	struct ibv_send_wr *wr = add_work(ex, IBV_WR_SEND_WITH_INV);

	if (wr)
		wr->invalidate_rkey = rkey;
}

static void wr_local_inv(struct ibv_qp_ex *ex, uint32_t rkey)
{
	struct ibv_send_wr *wr = add_work(ex, IBV_WR_LOCAL_INV);

	if (wr)
		wr->invalidate_rkey = rkey;
}

static void wr_bind_mw(struct ibv_qp_ex *ex, struct ibv_mw *mw, uint32_t rkey,
		       const struct ibv_mw_bind_info *bind)
{
	struct ibv_send_wr *wr = add_work(ex, IBV_WR_BIND_MW);

	if (!wr)
		return;
	wr->bind_mw.mw = mw;
	wr->bind_mw.rkey = rkey;
	wr->bind_mw.bind_info = *bind;
}

static void wr_send_tso(struct ibv_qp_ex *ex, void *header, uint16_t bytes, uint16_t segment)
{
	(void)header;
	(void)bytes;
	(void)segment;
	fail_batch(ex, EOPNOTSUPP);
}

static void wr_set_ud_addr(struct ibv_qp_ex *ex, struct ibv_ah *ah, uint32_t qpn, uint32_t qkey)
{
	struct work *work = last_work(ex);

	if (!work)
		return;
	work->wr.wr.ud.ah = ah;
	work->wr.wr.ud.remote_qpn = qpn;
	work->wr.wr.ud.remote_qkey = qkey;
}

static void wr_set_xrc_srqn(struct ibv_qp_ex *ex, uint32_t srqn)
{
	struct work *work = last_work(ex);

	if (work)
		work->wr.qp_type.xrc.remote_srqn = srqn;
}

static void wr_set_sge_list(struct ibv_qp_ex *ex, size_t n, const struct ibv_sge *sge)
{
	struct work *work = last_work(ex);

	if (!work)
		return;
	if (n > FAB_SGE_MAX) {
		fail_batch(ex, EINVAL);
		return;
	}
	memcpy(work->sge, sge, n * sizeof(*sge));
	work->wr.num_sge = (int)n;
}

static void wr_set_sge(struct ibv_qp_ex *ex, uint32_t lkey, uint64_t addr, uint32_t length)
{
	struct ibv_sge sge = { .addr = addr, .length = length, .lkey = lkey };

	wr_set_sge_list(ex, 1, &sge);
}

static void wr_set_inline_data_list(struct ibv_qp_ex *ex, size_t n, const struct ibv_data_buf *buf)
{
	struct work *work = last_work(ex);
	size_t i, bytes = 0;

	for (i = 0; work && i < n; i++) {
		if (bytes + buf[i].length > FAB_INLINE_MAX) {
			fail_batch(ex, EINVAL);
			return;
		}
		memcpy(work->inline_data + bytes, buf[i].addr, buf[i].length);
		bytes += buf[i].length;
	}
	if (!work)
		return;
	work->sge[0].addr = (uintptr_t)work->inline_data;
	work->sge[0].length = (uint32_t)bytes;
	work->wr.num_sge = 1;
	work->wr.send_flags |= IBV_SEND_INLINE;
}

static void wr_set_inline_data(struct ibv_qp_ex *ex, void *addr, size_t length)
{
	struct ibv_data_buf buf = { .addr = addr, .length = length };

	wr_set_inline_data_list(ex, 1, &buf);
}

static void wr_atomic_write(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t addr, const void *data)
{
	wr_rdma(ex, IBV_WR_ATOMIC_WRITE, rkey, addr, 0);
	wr_set_inline_data(ex, (void *)(uintptr_t)data, sizeof(uint64_t));
}

#ifdef FAB_HAS_FLUSH
_Static_assert((int)IBV_FLUSH_GLOBAL == FAB_FLUSH_GLOBAL, "the type is passed on");
_Static_assert((int)IBV_FLUSH_PERSISTENT == FAB_FLUSH_PERSISTENT, "the type is passed on");

static void wr_flush(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t addr, size_t length,
		     uint8_t type, uint8_t level)
{
	if (length > UINT32_MAX || level > IBV_FLUSH_MR ||
	    type & ~(IBV_FLUSH_GLOBAL | IBV_FLUSH_PERSISTENT))
		fail_batch(ex, EINVAL);
	wr_atomic(ex, IBV_WR_FLUSH, rkey, addr, length,
		  type | (level == IBV_FLUSH_MR ? FAB_FLUSH_REGION : 0u));
}
#endif

static int wr_complete(struct ibv_qp_ex *ex)
{
	struct fab_batch *batch = batch_of(ex);
	int err = batch->err;
	uint32_t i;

	for (i = 0; i + 1 < batch->n; i++)
		batch->work[i]->wr.next = &batch->work[i + 1]->wr;
	if (!err && batch->n)
		err = post_batch(&ex->qp_base, &batch->work[0]->wr);
	pthread_mutex_unlock(lock_of(ex));
	return err;
}

static void wr_abort(struct ibv_qp_ex *ex)
{
	pthread_mutex_unlock(lock_of(ex));
}

/*
 * Only rxe has the last two, and only on queue pairs that were made for them: librpma looks whether
 * there is wr_flush(), and reads where there is none.
 */
struct fab_batch *batch_new(struct ibv_qp_ex *ex, uint64_t ops)
{
	ex->wr_start = wr_start;
	ex->wr_complete = wr_complete;
	ex->wr_abort = wr_abort;
	ex->wr_send = wr_send;
	ex->wr_send_imm = wr_send_imm;
	ex->wr_send_inv = wr_send_inv;
	ex->wr_send_tso = wr_send_tso;
	ex->wr_local_inv = wr_local_inv;
	ex->wr_bind_mw = wr_bind_mw;
	ex->wr_rdma_read = wr_rdma_read;
	ex->wr_rdma_write = wr_rdma_write;
	ex->wr_rdma_write_imm = wr_rdma_write_imm;
	ex->wr_atomic_cmp_swp = wr_atomic_cmp_swp;
	ex->wr_atomic_fetch_add = wr_atomic_fetch_add;
	ex->wr_set_ud_addr = wr_set_ud_addr;
	ex->wr_set_xrc_srqn = wr_set_xrc_srqn;
	ex->wr_set_sge = wr_set_sge;
	ex->wr_set_sge_list = wr_set_sge_list;
	ex->wr_set_inline_data = wr_set_inline_data;
	ex->wr_set_inline_data_list = wr_set_inline_data_list;
	if (ops & IBV_QP_EX_WITH_ATOMIC_WRITE)
		ex->wr_atomic_write = wr_atomic_write;
#ifdef FAB_HAS_FLUSH
	if (ops & FAB_QP_EX_WITH_FLUSH)
		ex->wr_flush = wr_flush;
#endif
	return calloc(1, sizeof(struct fab_batch));
}

void batch_free(struct fab_batch *batch)
{
	uint32_t i;

	for (i = 0; batch && i < batch->n_max; i++)
		free(batch->work[i]);
	if (batch)
		free(batch->work);
	free(batch);
}
