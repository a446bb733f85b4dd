/* SPDX-License-Identifier: BSD-2-Clause */
/* What clients are sent. */
#ifndef LIB_PORTD_SERVER_CLIENTS_CLIENT_OUT_H
#define LIB_PORTD_SERVER_CLIENTS_CLIENT_OUT_H

#include "lib/portd/server/server_state.h"

/** client_may_send() - return whether the client's messages are read */
static inline bool client_may_send(const struct client *client)
{
	return !client->throttled && client->n_requests < REQUESTS_MAX;
}

/** client_takes_requests() - return whether the client's backlog has room for one more request */
bool client_takes_requests(struct client *client);

/** client_deliver() - queue a message for a client; sent at the end of the turn */
void client_deliver(struct server *server, struct client *client, struct host_port *host_port,
		    const struct mad_path *path, const uint8_t mad[MAD_BYTES],
		    bool is_of_connection);

/** client_disconnect() - disconnect at the end of the turn; the rest of its input is discarded */
void client_disconnect(struct server *server, struct client *client, const char *why);

/**
 * client_tell() - queue a record that must not be lost; sent at the end of the turn
 *
 * A client that keeps sending requests and does not read is disconnected.
 */
void client_tell(struct server *server, struct client *client, const struct portd_record *record);

/**
 * client_show() - queue a record, which is lost if the client does not read
 * @room: limit of queued datagrams
 *
 * Return: false if the record was lost.
 */
bool client_show(struct server *server, struct client *client, const struct portd_record *record,
		 unsigned int room);

/** client_port_gone() - notify a client that a host port it has opened was closed */
void client_port_gone(struct server *server, struct client *client, uint8_t handle);

/** client_watch_data() - update the events that its data socket is polled for */
void client_watch_data(struct server *server, struct client *client);

/** client_send_backlog() - send queued batches; the socket has room again */
void client_send_backlog(struct server *server, struct client *client);

/** client_flush() - send the batch filled in this turn */
void client_flush(struct server *server, struct client *client);

#endif
