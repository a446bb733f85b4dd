/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A device in memory that transfers data: writes of a queue pair go to the memory of its paired
 * queue pair, in order, after checks of the registration; messages wait for receives, completions
 * wake threads. In place of libibverbs, for the tests of sockets.
 */
#ifndef WIRE_DEVICE_H
#define WIRE_DEVICE_H

#include <infiniband/verbs.h>

#include "lib/rsocket/stream.h"

/** wire_begin() - start a device without objects; wire_end() requires that no object is left. */
void wire_begin(void);
void wire_end(void);

/** wire_id() - an id on the device, for wire_id_free(). */
struct rdma_cm_id *wire_id(void);
void wire_id_free(struct rdma_cm_id *id);

/** wire_pair() - connect two queue pairs. */
void wire_pair(struct ibv_qp *a, struct ibv_qp *b);

/** wire_cut() - cut the cable: all outstanding requests of both fail. */
void wire_cut(struct ibv_qp *qp);

/**
 * wire_allow_lies() - make forbidden writes an error of the connection, as with a device, until
 * wire_end(); otherwise they are errors of the test
 */
void wire_allow_lies(void);

/**
 * wire_inject() - deliver a message, in host order, that the peer of this queue pair never sent.
 */
void wire_inject(struct ibv_qp *qp, uint32_t message);

/**
 * wire_flood() - have the peer of this queue pair send a message, in host order, for each posted
 * receive, @n times; wire_flood_left(): the number of messages left
 */
void wire_flood(struct ibv_qp *qp, uint32_t message, unsigned int n);
unsigned int wire_flood_left(struct ibv_qp *qp);

/** wire_hold() - start or stop holding back the posted requests of a queue pair. */
void wire_hold(struct ibv_qp *qp, bool hold);

#endif
