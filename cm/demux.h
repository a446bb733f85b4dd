/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Maps a message to a connection and an event of it: IBTA vol. 1, 12.11.
 *
 * A comm id is valid only together with the peer's address, so a host that guesses ids cannot
 * disturb the connections of others.
 */
#ifndef CM_DEMUX_H
#define CM_DEMUX_H

#include "cm/fsm.h"

/**
 * cm_demux() - process the message of a step
 * @port: port that received it
 * @path: path back to the sender
 * @ctx:  carries the message; stateless answers go to its effects
 *
 * Return: the connection that stepped, or NULL.
 */
struct cm_conn *cm_demux(struct cm_port *port, const struct mad_path *path, struct cm_context *ctx);

/** cm_conn_take() - take a spare connection with a new comm id; NULL if either is lacking. */
struct cm_conn *cm_conn_take(struct cm_core *core);

/**
 * cm_conn_take_as() - take a spare connection for this comm id; NULL if none, or the id is in use.
 */
struct cm_conn *cm_conn_take_as(struct cm_core *core, uint32_t local_comm_id);

#endif
