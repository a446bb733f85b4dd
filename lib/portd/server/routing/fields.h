/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The values that a client may put into a message. The table in fields.c has a row for each field
 * of each message; docs/security.md has it in groups.
 */
#ifndef LIB_PORTD_SERVER_ROUTING_FIELDS_H
#define LIB_PORTD_SERVER_ROUTING_FIELDS_H

#include "lib/portd/server/server_state.h"

/* What limits the value of a field. */
enum fields_by {
	FIELDS_WITHOUT_ROW,
	FIELDS_BY_ROW,	    /* fields_wrong(), by the functions of its rows */
	FIELDS_BY_DECODER,  /* cm_msg_decode() */
	FIELDS_BY_TRACKER,  /* tracker_sent(), which finds the message's connection */
	FIELDS_AT_A_RATE,   /* any value, in so many messages a second */
	FIELDS_OVERWRITTEN, /* the server sets it */
	FIELDS_FREE,	    /* any value, as with stock, where programs choose it, too */
};

/**
 * fields_by() - look up what limits a field
 * @attr_id: of the message, an enum cm_attr
 * @field:   as its layout names it; fields of the MAD header and of the header of the IP CM service
 *           begin with "MAD." and "CMA.", those of the path with "path."
 */
enum fields_by fields_by(uint16_t attr_id, const char *field);

/* The field of which fields_wrong() says that another user's connection with the peer has it. */
extern const char fields_own_qpn[];

/**
 * fields_wrong() - find the first field of a client's message that the client may not set so
 * @host_port: an open port of the client
 * @gid:       the path's source GID; without verbs if it was not looked up
 * @msg:       the decoded message that it wants to send there
 *
 * Does not check whether the message's connection is the client's: that is the tracker's part.
 *
 * Return: the name of the field, or NULL if the message is valid.
 */
const char *fields_wrong(const struct server *server, const struct client *client,
			 struct host_port *host_port, const struct mad_path *path,
			 const struct gid_entry *gid, const struct cm_msg *msg);

#endif
