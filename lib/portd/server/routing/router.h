/* SPDX-License-Identifier: BSD-2-Clause */
/* The receiver of each message, and who may send one. */
#ifndef LIB_PORTD_SERVER_ROUTING_ROUTER_H
#define LIB_PORTD_SERVER_ROUTING_ROUTER_H

#include "lib/portd/server/server_state.h"

/** router_received() - handle a message that arrived at a host port, sent from @source_qpn */
void router_received(struct server *server, struct host_port *host_port,
		     const struct mad_path *path, uint32_t source_qpn,
		     const uint8_t mad[MAD_BYTES]);

/** router_sent() - handle a message from a client; the path in @mad is corrected in place */
void router_sent(struct server *server, struct client *client, struct portd_mad *mad);

/**
 * router_reap() - end a connection of an ended process, as the kernel would
 * @lane: connections of one lane wait for each other, see struct cm_pace
 */
void router_reap(struct server *server, const struct cm_record *tracked, uint16_t lane);

/** router_left() - note that the program with the block of this comm id has ended just now */
void router_left(struct server *server, uint32_t comm_id);

/** router_expire() - run the timers of our own core */
void router_expire(struct server *server);

#endif
