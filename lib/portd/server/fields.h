/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a client may put into a message: one row a field, fields.c. docs/security.md prints them.
 */
#ifndef LIB_PORTD_SERVER_FIELDS_H
#define LIB_PORTD_SERVER_FIELDS_H

#include "lib/portd/server/state.h"

/**
 * fields_wrong() - the first field of a client's message that is not its to say
 * @host_port: which it has opened
 * @msg:       what it wants to send there, decoded
 *
 * Which connection the message is of, and whether that is the client's, the tracker says.
 *
 * Return: its name, or NULL if there is none.
 */
const char *fields_wrong(const struct server *server, const struct client *client,
			 const struct host_port *host_port, const struct mad_path *path,
			 const struct cm_msg *msg);

#endif
