/* SPDX-License-Identifier: BSD-2-Clause */
/* Completion of work requests, successful or not. All functions are locked. */
#ifndef FABRIC_COMPLETION_H
#define FABRIC_COMPLETION_H

#include "tools/fabric/verbs/objects.h"

/** cq_push() - add a completion, and notify the program if the queue is armed */
void cq_push(struct fab_cq *cq, const struct ibv_wc *wc, bool solicited);

/**
 * cq_arm() - request an event for the next completion, or for a present one without an event;
 * locked
 */
void cq_arm(struct fab_cq *cq, bool solicited_only);

/** cq_forget() - remove the completions of a queue pair that is destroyed or reset */
void cq_forget(struct fab_cq *cq, uint32_t qpn);

/** receive_completed() - add the completion of a receive of a connected queue pair */
void receive_completed(struct fab_qp *qp, const struct ibv_wc *wc, bool solicited);

/** send_done() - complete the oldest send of a queue pair, which leaves the queue */
void send_done(struct fab_qp *qp, enum ibv_wc_status status);

/** qp_fail() - like send_done(), and move the queue pair to the error state */
void qp_fail(struct fab_qp *qp, enum ibv_wc_status status);

/** qp_forget() - remove the completions of a queue pair from its completion queues */
void qp_forget(struct fab_qp *qp);

/** qp_drop_message() - drop the responder's current message, with its receive and its ACK */
void qp_drop_message(struct fab_qp *qp);

/** qp_flush() - complete all pending work with IBV_WC_WR_FLUSH_ERR */
void qp_flush(struct fab_qp *qp);

/**
 * qp_enter_error() - move to the error state for an internal cause; @event is reported unless -1
 */
void qp_enter_error(struct fab_qp *qp, int event);

/** qp_report_event() - report an asynchronous event of a queue pair */
void qp_report_event(struct fab_qp *qp, enum ibv_event_type event);

#endif
