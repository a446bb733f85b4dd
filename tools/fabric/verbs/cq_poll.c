/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reading a completion one field at a time, as struct ibv_cq_ex has it.
 */
#include "tools/fabric/verbs/cq_poll.h"

#include <errno.h>

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

void cq_set_readers(struct fab_cq *cq)
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
