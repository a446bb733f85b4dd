/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Data that a responder owes its requester: responses to reads and atomics, in order, then one ACK
 * for all packets of a turn, or a NAK. A long response is sent in parts, one part per turn, so that
 * no queue pair delays the others. All functions are locked.
 *
 * If a program takes turns with its peer, the ACK of a message is deferred until the program sends
 * its answer, and leaves right before it, as from a device, or right after an answer that is a
 * write: the peer gets both at once (IBTA vol. 1, 9.7.5.1.2, lets a responder coalesce ACKs). The
 * program takes turns if it answered ACK_TURNS messages in a row, each before the next one came. A
 * deferred ACK is sent without an answer when the program polls in vain ACK_POLLS times in a row,
 * at the second tick of the timer, when another message comes, and when the queue pair ends. Where
 * two packets cannot leave together, no ACK is deferred: the peer may handle it meanwhile.
 */
#ifndef FABRIC_ACK_H
#define FABRIC_ACK_H

#include "tools/fabric/verbs/objects.h"

/** ack_owe() - send an ACK at the end of the turn, or with the program's answer */
void ack_owe(struct fab_qp *qp);

/** ack_note_message() - note that a message is complete */
void ack_note_message(struct fab_qp *qp);

/** ack_answered() - note that the program has sent something, and send a deferred ACK */
void ack_answered(struct fab_qp *qp);

/** ack_takes_turns() - return whether the program takes turns with its peer */
bool ack_takes_turns(const struct fab_qp *qp);

/** ack_end_turns() - the program does not take turns any more */
void ack_end_turns(struct fab_qp *qp);

/** ack_again() - acknowledge a duplicate at the end of the turn: the peer waits for an ACK */
void ack_again(struct fab_qp *qp);

/** ack_send_deferred() - send all deferred ACKs of a context; no answers come */
void ack_send_deferred(struct fab_context *context);

/** ack_polled() - note that the program has polled in vain; there may be no answer */
void ack_polled(struct fab_context *context);

/** ack_ticked() - note a tick of the timer */
void ack_ticked(struct fab_context *context);

/** ack_congestion() - handle a packet marked by a router: notify the peer, at a limited rate */
void ack_congestion(struct fab_qp *qp);

/** ack_send() - send the ACK that is owed, unless responses must precede it */
void ack_send(struct fab_qp *qp);

/** ack_nak() - send a NAK, after all responses that are owed */
void ack_nak(struct fab_qp *qp, enum fab_nak why);

/**
 * ack_make_room() - make room for the response to a new request
 *
 * A requester whose number of outstanding requests is limited shows by a new one that it has the
 * responses it asked for again, so one that is to be repeated is dropped if there is no room.
 *
 * Return: false if max_dest_rd_atomic is exceeded.
 */
bool ack_make_room(struct fab_qp *qp);

/**
 * ack_add_response() - queue a response, and send one turn's part of it
 *
 * To a duplicate (is_again) it is sent at the end of the turn: several may have come meanwhile,
 * and need one response.
 *
 * Return: false if max_dest_rd_atomic is exceeded.
 */
bool ack_add_response(struct fab_qp *qp, const struct fab_response *response);

/**
 * ack_find_response() - find the queued response that ends before @end_psn
 * @ret_is_first: whether it is being sent
 *
 * Return: the response, which may be changed; NULL if there is none.
 */
struct fab_response *ack_find_response(struct fab_qp *qp, uint32_t end_psn, bool *ret_is_first);

/**
 * ack_send_some() - send one turn's part of a queue pair's responses, then its ACK or NAK
 *
 * Return: whether nothing is left for the next turn; the ACK may be deferred.
 */
bool ack_send_some(struct fab_qp *qp);

#endif
