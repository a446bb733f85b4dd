/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Output on a client's data socket: several records to a datagram, and a backlog for a client that
 * does not read.
 */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/log.h"
#include "lib/portd/proto/datagram.h"
#include "lib/portd/server/clients/client_out.h"
#include "lib/portd/server/clients/user.h"
#include "lib/portd/server/ledger/tracked.h"
#include "lib/portd/server/server_state.h"

void client_watch_data(struct server *server, struct client *client)
{
	uint32_t events = client_may_send(client) ? EPOLLIN : 0;

	if (!list_is_empty(&client->backlog))
		events |= (uint32_t)EPOLLOUT;
	loop_change(&server->loop, &client->data, events);
}

/* One is kept: malloc() is slow for so large a piece. */
static struct batch *batch_new(struct server *server)
{
	struct batch *batch = server->spare ? server->spare : malloc(sizeof(*batch));

	server->spare = NULL;
	if (batch) {
		list_init(&batch->link);
		batch->datagram.bytes = 0;
	}
	return batch;
}

static void batch_free(struct server *server, struct batch *batch)
{
	free(server->spare);
	server->spare = batch;
}

/* Return: false if the socket has no room. Data for a disconnected client is discarded. */
static bool send_batch(const struct client *client, const struct batch *batch)
{
	int err = portd_datagram_send(client->data.fd, &batch->datagram, NULL, MSG_DONTWAIT);

	return err != -EAGAIN && err != -ENOBUFS;
}

void client_send_backlog(struct server *server, struct client *client)
{
	struct batch *batch;

	while (!list_is_empty(&client->backlog)) {
		batch = container_of(client->backlog.next, struct batch, link);
		if (!send_batch(client, batch))
			return;
		list_remove(&batch->link);
		client->n_backlog--;
		client->user->n_queued--;
		batch_free(server, batch);
	}
	client_watch_data(server, client);
}

void client_flush(struct server *server, struct client *client)
{
	struct batch *batch = client->out;

	if (!batch)
		return;
	client->out = NULL;
	list_remove(&client->link);
	if (list_is_empty(&client->backlog) && send_batch(client, batch)) {
		batch_free(server, batch);
		return;
	}
	list_append(&client->backlog, &batch->link);
	client->n_backlog++;
	client->user->n_queued++;
	client_watch_data(server, client);
}

/*
 * A client that does not read loses requests first, because peers retransmit them, and messages of
 * no connection, because anybody can send those. It loses no response to its own queries, but
 * cannot send more of them. It must be notified that a port is gone, at most once for each port
 * that it has opened.
 */
enum {
	ROOM_FOR_REQUEST = BACKLOG_MAX / 2,
	ROOM_FOR_MESSAGE = BACKLOG_MAX,
	ROOM_FOR_ANSWER = 2 * BACKLOG_MAX,
	ROOM_FOR_GONE = INT_MAX,
};

/* A client without a backlog may queue one datagram, even if its user's quota is exhausted. */
static bool has_room(struct client *client, unsigned int room)
{
	return client->n_backlog < room &&
	       (!client->n_backlog || user_may(client, QUOTA_USER_QUEUED));
}

bool client_takes_requests(struct client *client)
{
	return has_room(client, ROOM_FOR_REQUEST - 1);
}

bool client_show(struct server *server, struct client *client, const struct portd_record *record,
		 unsigned int room)
{
	if (client->out && portd_put(&client->out->datagram, record))
		return true;
	client_flush(server, client);
	if (room == ROOM_FOR_GONE || has_room(client, room))
		client->out = batch_new(server);
	if (!client->out)
		return false;
	list_append(&server->filled, &client->link);
	return portd_put(&client->out->datagram, record);
}

void client_deliver(struct server *server, struct client *client, struct host_port *host_port,
		    const struct mad_path *path, const uint8_t mad[MAD_BYTES],
		    bool is_of_connection)
{
	struct portd_record record = { .type = PORTD_MAD,
				       .mad = { .port = host_port->handle, .path = *path } };

	memcpy(record.mad.mad, mad, MAD_BYTES);
	if (client_show(server, client, &record,
			is_of_connection ? ROOM_FOR_MESSAGE : ROOM_FOR_REQUEST))
		tracker_handed(server->tracker, client->index);
	else
		stat_count(host_port, PORTD_COUNT_OVERFLOW, mad);
}

void client_disconnect(struct server *server, struct client *client, const char *why)
{
	log_debug("client %u, pid %d is disconnected: %s", client->index, (int)client->pid, why);
	client->is_disconnected = client->leaving = server->any_leaving = true;
}

void client_tell(struct server *server, struct client *client, const struct portd_record *record)
{
	if (!client_show(server, client, record, ROOM_FOR_ANSWER))
		client_disconnect(server, client, "it does not read its answers");
}

void client_port_gone(struct server *server, struct client *client, uint8_t handle)
{
	struct portd_record record = { .type = PORTD_GONE, .gone = { .port = handle } };

	if (!(client->host_ports >> handle & 1))
		return;
	client->host_ports &= ~(UINT64_C(1) << handle);
	client_show(server, client, &record, ROOM_FOR_GONE);
}
