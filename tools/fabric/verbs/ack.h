/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a responder owes its requester: responses to reads and atomics, in order, and after them one
 * ACK for all packets of a turn, or a NAK. A long response is sent in parts, a part a turn, so that
 * no queue pair holds up the others. All of it locked.
 */
#ifndef FABRIC_ACK_H
#define FABRIC_ACK_H

#include "tools/fabric/verbs/objects.h"

/** ack_owe() - send an ACK at the end of the turn. */
void ack_owe(struct fab_qp *qp);

/** ack_congestion() - a packet of the peer's came that a router has marked: tell it, now and then.
 */
void ack_congestion(struct fab_qp *qp);

/** ack_send() - send the ACK that is owed, unless responses have to come first. */
void ack_send(struct fab_qp *qp);

/** ack_nak() - send a NAK: now, or after the responses that are owed. */
void ack_nak(struct fab_qp *qp, enum fab_nak why);

/**
 * ack_add_response() - queue a response, and send as much of it as a turn allows
 *
 * Return: false if more are queued than max_dest_rd_atomic allows.
 */
bool ack_add_response(struct fab_qp *qp, const struct fab_response *response);

/**
 * ack_find_response() - the response that is owed and ends before this PSN
 * @ret_is_first: is it the one that is being sent?
 *
 * Return: it, which may be changed; NULL if there is none.
 */
struct fab_response *ack_find_response(struct fab_qp *qp, uint32_t end_psn, bool *ret_is_first);

/** ack_send_some() - a turn's part of what a queue pair owes. Return: whether that was all. */
bool ack_send_some(struct fab_qp *qp);

#endif
