/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Work that is done, well or not. All of it locked.
 */
#ifndef FABRIC_COMPLETION_H
#define FABRIC_COMPLETION_H

#include "tools/fabric/verbs/objects.h"

/** cq_push() - add a completion, and tell the program if it asked to be told. */
void cq_push(struct fab_cq *cq, const struct ibv_wc *wc, bool solicited);

/**
 * cq_arm() - have the program told of a completion: of the next one, or of one that is there and of
 * which no event has told it; locked
 */
void cq_arm(struct fab_cq *cq, bool solicited_only);

/** cq_forget() - take out what is about a queue pair that ends or starts anew. */
void cq_forget(struct fab_cq *cq, uint32_t qpn);

/** receive_completed() - add the completion of a receive of a connected queue pair. */
void receive_completed(struct fab_qp *qp, const struct ibv_wc *wc, bool solicited);

/** send_done() - the oldest send of a queue pair is over; it leaves the queue. */
void send_done(struct fab_qp *qp, enum ibv_wc_status status);

/** qp_fail() - like send_done(), and the queue pair is in error. */
void qp_fail(struct fab_qp *qp, enum ibv_wc_status status);

/** qp_forget() - take its completions out of its queues. */
void qp_forget(struct fab_qp *qp);

/** qp_drop_message() - forget the message that the responder is in, its receive and its ACK. */
void qp_drop_message(struct fab_qp *qp);

/** qp_flush() - all that waits is over with IBV_WC_WR_FLUSH_ERR. */
void qp_flush(struct fab_qp *qp);

/** qp_enter_error() - the state of error, from within; @event: what the program is told, or -1. */
void qp_enter_error(struct fab_qp *qp, int event);

/** qp_async() - tell the program of an event of a queue pair. */
void qp_async(struct fab_qp *qp, enum ibv_event_type event);

#endif
