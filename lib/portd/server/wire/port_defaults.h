/* SPDX-License-Identifier: BSD-2-Clause */
/* Settings of ports made by root. */
#ifndef LIB_PORTD_SERVER_WIRE_PORT_DEFAULTS_H
#define LIB_PORTD_SERVER_WIRE_PORT_DEFAULTS_H

#include "lib/portd/server/server_state.h"

/** port_defaults_begin() - read the port file, and again when requested. Return: 0 or -errno. */
int port_defaults_begin(struct server *server);

/** port_defaults_tell() - send a client the settings of a port, if it has opened that port */
void port_defaults_tell(struct server *server, struct client *client,
			const struct host_port *host_port);

#endif
