/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reading completions: ibv_poll_cq(), and one field at a time, as struct ibv_cq_ex has it.
 */
#include "tools/fabric/verbs/cq_poll.h"

#include <errno.h>
#include <sched.h>

#include "tools/fabric/verbs/completion.h"
#include "tools/fabric/verbs/engine.h"

/* An empty queue takes packets here: no thread has to wake up for a program that polls. A program
 * that only polls yields the processor to the one that it waits for. */
int cq_poll(struct ibv_cq *ibv, int num_entries, struct ibv_wc *wc)
{
	struct fab_context *context = to_context(ibv->context);
	struct fab_cq *cq = to_cq(ibv);
	int i;

	pthread_mutex_lock(&context->lock);
	if (!cq->count)
		context_progress(context);
	for (i = 0; i < num_entries && cq->count; i++) {
		wc[i] = cq->ring[cq->head];
		cq->head = (cq->head + 1) % cq->n;
		cq->count--;
	}
	pthread_mutex_unlock(&context->lock);
	if (!i)
		sched_yield();
	return i;
}

int cq_req_notify(struct ibv_cq *ibv, int solicited_only)
{
	struct fab_context *context = to_context(ibv->context);

	pthread_mutex_lock(&context->lock);
	cq_arm(to_cq(ibv), solicited_only);
	pthread_mutex_unlock(&context->lock);
	return 0;
}

/* --- one field at a time ------------------------------------------------- */

static struct fab_cq *from_ex(struct ibv_cq_ex *ex)
{
	return container_of(ex, struct fab_cq, ex);
}

static int next_poll(struct ibv_cq_ex *ex)
{
	struct fab_cq *cq = from_ex(ex);

	if (cq_poll(from_cq(cq), 1, &cq->current) != 1)
		return ENOENT;
	ex->wr_id = cq->current.wr_id;
	ex->status = cq->current.status;
	return 0;
}

static int start_poll(struct ibv_cq_ex *ex, struct ibv_poll_cq_attr *attr)
{
	return attr->comp_mask ? EINVAL : next_poll(ex);
}

static void end_poll(struct ibv_cq_ex *ex)
{
	(void)ex;
}

static enum ibv_wc_opcode read_opcode(struct ibv_cq_ex *ex)
{
	return from_ex(ex)->current.opcode;
}

static uint32_t read_vendor_err(struct ibv_cq_ex *ex)
{
	return from_ex(ex)->current.vendor_err;
}

static uint32_t read_byte_len(struct ibv_cq_ex *ex)
{
	return from_ex(ex)->current.byte_len;
}

static __be32 read_imm_data(struct ibv_cq_ex *ex)
{
	return from_ex(ex)->current.imm_data;
}

static uint32_t read_qp_num(struct ibv_cq_ex *ex)
{
	return from_ex(ex)->current.qp_num;
}

static uint32_t read_src_qp(struct ibv_cq_ex *ex)
{
	return from_ex(ex)->current.src_qp;
}

static unsigned int read_wc_flags(struct ibv_cq_ex *ex)
{
	return from_ex(ex)->current.wc_flags;
}

static uint32_t read_slid(struct ibv_cq_ex *ex)
{
	return from_ex(ex)->current.slid;
}

static uint8_t read_sl(struct ibv_cq_ex *ex)
{
	return from_ex(ex)->current.sl;
}

static uint8_t read_dlid_path_bits(struct ibv_cq_ex *ex)
{
	return from_ex(ex)->current.dlid_path_bits;
}

static void set_readers(struct fab_cq *cq)
{
	struct ibv_cq_ex *ex = &cq->ex;

	ex->start_poll = start_poll;
	ex->next_poll = next_poll;
	ex->end_poll = end_poll;
	ex->read_opcode = read_opcode;
	ex->read_vendor_err = read_vendor_err;
	ex->read_byte_len = read_byte_len;
	ex->read_imm_data = read_imm_data;
	ex->read_qp_num = read_qp_num;
	ex->read_src_qp = read_src_qp;
	ex->read_wc_flags = read_wc_flags;
	ex->read_slid = read_slid;
	ex->read_sl = read_sl;
	ex->read_dlid_path_bits = read_dlid_path_bits;
}

struct ibv_cq_ex *cq_create_ex(struct ibv_context *verbs, struct ibv_cq_init_attr_ex *attr)
{
	struct ibv_cq *cq;

	if (attr->wc_flags & ~(uint64_t)IBV_WC_STANDARD_FLAGS || attr->comp_mask) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	cq = ibv_create_cq(verbs, (int)attr->cqe, attr->cq_context, attr->channel,
			   (int)attr->comp_vector);
	if (!cq)
		return NULL;
	set_readers(to_cq(cq));
	return &to_cq(cq)->ex;
}
