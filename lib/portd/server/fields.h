/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The values that a client may put into a message: fields.c has a row for each field, and
 * docs/security.md prints the same table.
 */
#ifndef LIB_PORTD_SERVER_FIELDS_H
#define LIB_PORTD_SERVER_FIELDS_H

#include "lib/portd/server/state.h"

/* The field of which fields_wrong() says that another user's connection with the peer has it. */
extern const char fields_own_qpn[];

/**
 * fields_wrong() - find the first field of a client's message that the client may not set so
 * @host_port: an open port of the client
 * @msg:       the decoded message that it wants to send there
 *
 * Does not check whether the message's connection is the client's: that is the tracker's part.
 *
 * Return: the name of the field, or NULL if the message is valid.
 */
const char *fields_wrong(const struct server *server, const struct client *client,
			 const struct host_port *host_port, const struct mad_path *path,
			 const struct cm_msg *msg);

#endif
