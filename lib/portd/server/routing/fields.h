/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The values that a client may put into a message. The table in fields.c has the fields that are
 * limited for themselves; the tracker limits those that name a connection (tracker_sent()), and
 * test_server_table.c has those that a client may choose. docs/security.md has all in groups.
 */
#ifndef LIB_PORTD_SERVER_ROUTING_FIELDS_H
#define LIB_PORTD_SERVER_ROUTING_FIELDS_H

#include "lib/portd/server/server_state.h"

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
			 struct host_port *host_port, const struct mad_path *path,
			 const struct cm_msg *msg);

#endif
