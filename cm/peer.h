/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a peer's answers tell of what it has not answered yet: REQs, REPs, DREQs and SIDR_REQs.
 *
 * A peer that is busy takes one REQ after the other. As long as it answers those that were sent
 * before ours, or with it, ours waits there, and a repetition would only make it busier. Once it
 * has answered one that was sent well after ours, ours was lost. A peer that says nothing gets it
 * again after the usual time, and a little later for each other one that waits there.
 *
 * What many of them are overdue for is asked one after the other: an MRA for one says that the
 * peer lives and is slow, and the others wait. Another answer to one that was repeated says nothing
 * of them, as it may be to the repetition.
 *
 * Connections that wait for the same answer of the same peer form a list, and one of them stands
 * for all in an index, so that nothing has to be allocated, and nothing is known of a peer to which
 * nothing is outstanding.
 */
#ifndef CM_PEER_H
#define CM_PEER_H

#include "cm/core.h"

/** cm_peer_await() - the connection's message leaves for the first time. */
void cm_peer_await(struct cm_conn *conn, struct cm_core *core);

/**
 * cm_peer_answered() - the peer has answered it; harmless if none waits
 * @is_mra: with no more than that it has it
 */
void cm_peer_answered(const struct cm_conn *conn, struct cm_core *core, bool is_mra,
		      struct cm_time now);

/** cm_peer_repeated() - the connection's message leaves again. */
void cm_peer_repeated(const struct cm_conn *conn, struct cm_core *core, struct cm_time now);

/** cm_peer_forget() - no answer is awaited any more; likewise. */
void cm_peer_forget(struct cm_conn *conn, struct cm_core *core);

/**
 * cm_peer_take_waiting() - whose message is to be sent next, of those that wait for their turn
 * @pace: of @port
 *
 * What is for peers that have answered none of many repetitions goes to the queue of those: it must
 * not hold up what others would answer.
 *
 * Return: the connection, which waits no more; NULL if there is none.
 */
struct cm_conn *cm_peer_take_waiting(struct cm_pace *pace, struct cm_port *port,
				     const struct cm_core *core);

/**
 * cm_peer_overdue() - when an answer is overdue, by what the peer has said since
 *
 * Return: a time that has passed already if the peer gives no reason to wait longer.
 */
struct cm_time cm_peer_overdue(const struct cm_conn *conn, const struct cm_core *core);

#endif
