/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Acknowledgements that a responder owes: see ack.h.
 */
#include "tools/fabric/verbs/ack.h"

#include "tools/fabric/verbs/transport.h"

void ack_send(struct fab_qp *qp)
{
	struct fab_packet packet;

	qp->responder.owes_ack = false;
	list_remove(&qp->unacked);
	transport_header(qp, &packet);
	packet.op = FAB_OP_ACK;
	packet.psn = (qp->responder.psn - 1) & FAB_PSN_MASK;
	transport_send(context_of(qp), qp->path, &packet, NULL);
}

void ack_owe(struct fab_qp *qp)
{
	if (qp->responder.owes_ack)
		return;
	qp->responder.owes_ack = true;
	list_append(&context_of(qp)->unacked, &qp->unacked);
}

void ack_send_all(struct fab_context *context)
{
	while (!list_is_empty(&context->unacked))
		ack_send(container_of(context->unacked.next, struct fab_qp, unacked));
}
