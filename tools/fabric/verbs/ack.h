/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Acknowledgements of what a responder has taken. They are sent at the end of a turn, one for all
 * packets of a queue pair. All of it locked.
 */
#ifndef FABRIC_ACK_H
#define FABRIC_ACK_H

#include "tools/fabric/verbs/objects.h"

/** ack_owe() - send one at the end of the turn. */
void ack_owe(struct fab_qp *qp);

/** ack_send() - send it now. */
void ack_send(struct fab_qp *qp);

/** ack_send_all() - send all that are owed. */
void ack_send_all(struct fab_context *context);

#endif
