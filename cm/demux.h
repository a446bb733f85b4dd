/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * From a message to the connection it means and the event it is there: IBTA vol. 1, 12.11.
 *
 * A comm id is valid only together with the address it was agreed with, so a host that guesses ids
 * cannot disturb the connections of others.
 */
#ifndef CM_DEMUX_H
#define CM_DEMUX_H

#include "cm/fsm.h"

/**
 * cm_demux() - let a message happen
 * @port: where it arrived
 * @path: the way back
 * @turn: with the message; answers that need no connection go to its effects
 *
 * Return: the connection that stepped, or NULL.
 */
struct cm_conn *cm_demux(struct cm_port *port, const struct mad_path *path, struct cm_turn *turn);

/** cm_conn_take() - a spare connection with a fresh comm id; NULL if there is none of either. */
struct cm_conn *cm_conn_take(struct cm_core *core);

/** cm_conn_take_as() - a spare connection with this comm id; NULL if there is none or it is used.
 */
struct cm_conn *cm_conn_take_as(struct cm_core *core, uint32_t local_comm_id);

#endif
