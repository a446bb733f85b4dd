/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Asynchronous events of a host port's device: the port's state, LID or tables have changed, or the
 * subnet manager has. What we have cached is read again, and the event is counted on the pages of
 * the clients, which do the same. So nobody queries a device for each connection: that may be a
 * command of its firmware.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "lib/net/gid_table.h"
#include "lib/portd/server/ports/ports.h"
#include "lib/portd/server/sa/subnet_queries.h"
#include "lib/portd/server/server_state.h"
#include "lib/portd/server/wire/host_port.h"

/* What the events of one turn have changed. */
struct changes {
	bool any; /* of any port: a device's tables are read together */
	bool of_port;
	bool reregister;
	bool gids;
};

static void note_event(const struct ibv_async_event *event, uint8_t port_num, struct changes *io)
{
	bool is_ours = event->element.port_num == port_num;

	switch ((int)event->event_type) {
	case IBV_EVENT_CLIENT_REREGISTER:
		io->reregister = io->reregister || is_ours;
		break;
	case IBV_EVENT_GID_CHANGE:
		io->gids = true;
		break;
	case IBV_EVENT_PORT_ACTIVE:
	case IBV_EVENT_PORT_ERR:
	case IBV_EVENT_LID_CHANGE:
	case IBV_EVENT_SM_CHANGE:
	case IBV_EVENT_PKEY_CHANGE:
		break;
	default:
		return;
	}
	io->any = true;
	io->of_port = io->of_port || is_ours;
}

static void tell_clients(struct server *server, const struct host_port *host_port)
{
	struct client *client;

	for_each_client (client, server)
		if (client_host_port(server, client, host_port->handle))
			ports_count_event(client->net_ns->ports, client->index, host_port->handle);
}

static void events_ready(struct watch *watch)
{
	struct host_port *host_port = container_of(watch, struct host_port, async);
	struct server *server = host_port->server;
	struct changes changes = { .any = false };
	struct ibv_async_event event;

	while (ibv_get_async_event(host_port->verbs, &event) == 0) {
		note_event(&event, host_port->port_num, &changes);
		ibv_ack_async_event(&event);
	}
	if (!changes.any)
		return;
	gid_forget(host_port->verbs);
	if (changes.of_port)
		subnet_port_changed(server, host_port, changes.reregister);
	if (changes.gids && !host_port->subnet)
		host_port->has_moved = server->any_port_news = true;
	tell_clients(server, host_port);
}

/* The device closes its descriptor. Devices that only tests have use descriptor zero. */
int device_events_watch(struct server *server, struct host_port *host_port)
{
	int fd = host_port->verbs->async_fd;

	if (fd <= STDERR_FILENO)
		return 0;
	if (fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK))
		return -errno;
	return loop_watch(&server->loop, &host_port->async, fd, EPOLLIN, events_ready);
}
