/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The recording: the latest messages of this host, in a file beside the socket, for `purecm trace`.
 * A message costs no system call.
 */
#ifndef LIB_PORTD_SERVER_WIRE_RECORDING_H
#define LIB_PORTD_SERVER_WIRE_RECORDING_H

#include "lib/portd/server/server_state.h"

/** recording_begin() - begin to record messages in a file; the callee owns @fd, also on error */
void recording_begin(struct server *server, int fd);

/** recording_write() - as recording_add(), if there is a recording */
void recording_write(struct server *server, struct host_port *host_port, enum portd_way way,
		     const struct client *whose, const struct mad_path *path,
		     const uint8_t mad[MAD_BYTES]);

/** recording_add() - record a message; @whose may be NULL */
static inline void recording_add(struct server *server, struct host_port *host_port,
				 enum portd_way way, const struct client *whose,
				 const struct mad_path *path, const uint8_t mad[MAD_BYTES])
{
	if (server->recording.ring)
		recording_write(server, host_port, way, whose, path, mad);
}

#endif
