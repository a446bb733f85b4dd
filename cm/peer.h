/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Infers from a peer's answers what became of the messages that it has not answered: REQs, REPs,
 * DREQs and SIDR_REQs.
 *
 * A busy peer takes one REQ after the other. As long as it answers REQs that were sent before ours,
 * or with it, ours is still queued there, and a retransmission would only add load. Once it answers
 * one that was sent well after ours, ours was lost. If a peer answers nothing, we retransmit after
 * the default interval, plus a little for each other message that waits there.
 *
 * Overdue messages to one peer are retransmitted one by one: an MRA for one shows that the peer is
 * alive and slow, and the others wait. Any other answer to a retransmitted message proves nothing
 * about the others, since it may answer the retransmission.
 *
 * Connections that wait for the same kind of answer from the same peer form a list, and one of them
 * represents the list in an index. So nothing is allocated, and no state is kept for a peer without
 * outstanding messages.
 */
#ifndef CM_PEER_H
#define CM_PEER_H

#include "cm/core.h"

/** cm_peer_await() - record the first transmission of a connection's message. */
void cm_peer_await(struct cm_conn *conn, struct cm_core *core);

/**
 * cm_peer_answered() - record an answer of the peer; no effect if no message waits for one
 * @is_mra: the answer is an MRA, so the message still waits
 */
void cm_peer_answered(struct cm_conn *conn, struct cm_core *core, bool is_mra, struct cm_time now);

/** cm_peer_repeated() - record a retransmission; no effect if no message waits. */
void cm_peer_repeated(struct cm_conn *conn, struct cm_core *core, struct cm_time now);

/** cm_peer_forget() - stop waiting for an answer; no effect if no message waits. */
void cm_peer_forget(struct cm_conn *conn, struct cm_core *core);

/** cm_pace_init() - initialise, with no slot in use and no waiting connection */
void cm_pace_init(struct cm_pace *pace);

/** cm_pace_append() - append a connection to its lane, where it waits for a slot */
void cm_pace_append(struct cm_pace *pace, struct cm_conn *conn);

/**
 * cm_peer_take_waiting() - take the next connection that waits for a send slot
 * @pace: one of @port's
 *
 * Messages to peers that did not answer several retransmissions, or are slow, move to the port's
 * to_unresponsive queue, so that they do not delay messages to other peers.
 *
 * Return: the connection, removed from the queue; NULL if there is none.
 */
struct cm_conn *cm_peer_take_waiting(struct cm_pace *pace, struct cm_port *port,
				     const struct cm_core *core);

/**
 * cm_peer_slot_until() - when a connection has to give its slot back although its peer seems busy
 *
 * Gives it back, and considers the peer slow, if that time has passed: a peer that answers one
 * message now and then must not keep the slots of all others.
 *
 * Return: the time; CM_TIME_NEVER once it has passed.
 */
struct cm_time cm_peer_slot_until(struct cm_conn *conn, struct cm_core *core, struct cm_time now);

/**
 * cm_peer_overdue() - deadline for an answer, given what the peer has answered since
 *
 * Return: the deadline; it has already passed if there is no reason to wait longer.
 */
struct cm_time cm_peer_overdue(struct cm_conn *conn, const struct cm_core *core);

#endif
