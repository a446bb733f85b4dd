/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A device that carries data, in memory only: what is written by a queue pair arrives in the memory
 * of the one it is paired with, in order, checked against what was registered; messages wait for
 * receives, completions wake. In place of libibverbs, for the tests of sockets.
 */
#ifndef WIRE_DEVICE_H
#define WIRE_DEVICE_H

#include <infiniband/verbs.h>

#include "lib/rsocket/stream.h"

/** wire_begin() - a device with nothing made on it; wire_end() demands that nothing is left. */
void wire_begin(void);
void wire_end(void);

/** wire_id() - an id that was shown the device, for wire_id_free(). */
struct rdma_cm_id *wire_id(void);
void wire_id_free(struct rdma_cm_id *id);

/** wire_pair() - what one sends, the other receives. */
void wire_pair(struct ibv_qp *a, struct ibv_qp *b);

/** wire_cut() - the cable is cut: all that either has under way fails. */
void wire_cut(struct ibv_qp *qp);

/**
 * wire_allow_lies() - what is written where it may not be is an error of the test, unless a peer is
 * to lie about where that is: then it is one of the connection, as with a device; until wire_end()
 */
void wire_allow_lies(void);

/** wire_inject() - a message, in host order, that the peer of this queue pair never sent. */
void wire_inject(struct ibv_qp *qp, uint32_t message);

/**
 * wire_flood() - have the peer of this queue pair send a message, in host order, for each receive
 * that is posted, @n times; wire_flood_left(): how often it will yet
 */
void wire_flood(struct ibv_qp *qp, uint32_t message, unsigned int n);
unsigned int wire_flood_left(struct ibv_qp *qp);

/** wire_hold() - keep what a queue pair posts from being carried out, or no longer. */
void wire_hold(struct ibv_qp *qp, bool hold);

#endif
