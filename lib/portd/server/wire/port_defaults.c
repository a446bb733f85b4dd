/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Port settings made by root in the file of port_file.h. The file is read at the start and at each
 * SIGHUP; clients are notified of changes.
 */
#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/log.h"
#include "lib/portd/server/clients/client_out.h"
#include "lib/portd/server/server_state.h"
#include "lib/portd/server/wire/host_port.h"

/* An invalid file leaves the settings unchanged. */
static void read_file(struct server *server)
{
	const char *path = server->options.port_file;
	unsigned int number = 0;
	int err = path ? port_file_read(path, &server->port_file, &number) : 0;

	if (err == -EINVAL)
		log_warn("%s: line %u is wrong, and the file is not used; see cmportd(8)", path,
			 number);
	else if (err == -EPROTONOSUPPORT)
		log_warn("%s: line %u asks for RoCE v1, which purecm does not have, and the file "
			 "is not used; see cmportd(8)",
			 path, number);
	else if (err)
		log_warn("%s cannot be used: %s", path, strerror(-err));
}

static void tell_clients(struct server *server, const struct host_port *host_port)
{
	struct client *client;

	for_each_client (client, server)
		port_defaults_tell(server, client, host_port);
}

static void reload_defaults(struct watch *watch)
{
	struct server *server = container_of(watch, struct server, reload);
	struct signalfd_siginfo info;
	struct host_port *host_port;
	uint8_t tos;

	if (read(watch->fd, &info, sizeof(info)) < 0)
		return;
	read_file(server);
	for_each_host_port (host_port, server) {
		tos = port_file_tos(&server->port_file, host_port->device, host_port->port_num);
		if (tos == host_port->tos)
			continue;
		host_port->tos = tos;
		tell_clients(server, host_port);
	}
}

void port_defaults_tell(struct server *server, struct client *client,
			const struct host_port *host_port)
{
	const struct portd_record record = {
		.type = PORTD_PORT_TOS,
		.port_tos = { .port = host_port->handle, .tos = host_port->tos },
	};

	if (client_host_port(server, client, host_port->handle) == host_port)
		client_tell(server, client, &record);
}

int port_defaults_begin(struct server *server)
{
	read_file(server);
	return server->options.reload_fd < 0
		       ? 0
		       : loop_watch(&server->loop, &server->reload, server->options.reload_fd,
				    EPOLLIN, reload_defaults);
}
