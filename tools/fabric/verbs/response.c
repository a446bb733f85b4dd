/* SPDX-License-Identifier: BSD-2-Clause */
/* Validation of responses: see response.h. */
#include "tools/fabric/verbs/response.h"

#define ATOMIC_BYTES 8

uint32_t response_bytes(const struct fab_qp *qp, const struct fab_send *send)
{
	uint64_t offset = (qp->sq.una - send->first_psn) * qp->payload_bytes;
	uint64_t left = send->bytes - offset;

	if (is_atomic_send(send))
		return ATOMIC_BYTES;
	if (send->opcode != IBV_WR_RDMA_READ)
		return 0;
	return (uint32_t)(left < qp->payload_bytes ? left : qp->payload_bytes);
}

/*
 * Within a part that was requested again, the next response may be the first one of the repetition,
 * or one of the first attempt. Both attempts end with the part.
 */
static bool is_in_place(const struct fab_qp *qp, const struct fab_send *send, uint8_t flags)
{
	uint32_t part = send->opcode == IBV_WR_RDMA_READ ? send->part_psns : 1;
	uint32_t n = (uint32_t)(qp->sq.una - send->first_psn);
	bool begins = n % part == 0, ends = (n + 1) % part == 0 || n + 1 == send->n_psn;

	if (ends != !!(flags & FAB_LAST))
		return false;
	return flags & FAB_FIRST ? begins || qp->sq.rest_psn == qp->sq.una : !begins;
}

bool response_is_good(const struct fab_qp *qp, const struct fab_send *send,
		      const struct fab_packet *packet)
{
	if (!has_response(send))
		return false;
	if (packet->op == FAB_OP_ATOMIC_RESPONSE)
		return is_atomic_send(send);
	return !is_atomic_send(send) && packet->bytes == response_bytes(qp, send) &&
	       is_in_place(qp, send, packet->flags);
}
