/* SPDX-License-Identifier: BSD-2-Clause */
/* Copies of all messages, for tracers and for the recording. */
#ifndef LIB_PORTD_SERVER_WIRE_TRACERS_H
#define LIB_PORTD_SERVER_WIRE_TRACERS_H

#include "lib/portd/server/server_state.h"

/** tracer_record() - begin the recording of messages in a file, which is taken over */
void tracer_record(struct server *server, int fd);

/**
 * tracer_begin() - let a client see all messages
 *
 * Return: a descriptor of the trace ring, owned by the caller; -EPERM except for root and the user
 * that cmportd runs as; -errno.
 */
int tracer_begin(struct server *server, struct client *client);

/** tracer_await() - handle an AWAIT. Return: false for another record, or if it is no tracer. */
bool tracer_await(struct server *server, struct client *client, const struct portd_record *record);

/** tracer_end() - the client is disconnecting */
void tracer_end(struct server *server, struct client *client);

/** tracer_write() - as tracer_show(), if there is a recording or a tracer */
void tracer_write(struct server *server, struct host_port *host_port, enum portd_way way,
		  const struct client *whose, const struct mad_path *path,
		  const uint8_t mad[MAD_BYTES]);

/** tracer_show() - record a message and show it to tracers; @whose may be NULL */
static inline void tracer_show(struct server *server, struct host_port *host_port,
			       enum portd_way way, const struct client *whose,
			       const struct mad_path *path, const uint8_t mad[MAD_BYTES])
{
	if (server->recording.ring || server->n_tracers)
		tracer_write(server, host_port, way, whose, path, mad);
}

#endif
