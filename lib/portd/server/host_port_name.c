/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The device of a host port. The kernel numbers devices ("uverbs0"); the names that clients use may
 * change while devices are open.
 */
#include <string.h>

#include "base/log.h"
#include "lib/portd/server/state.h"
#include "mad/umad_owner.h"

struct tracked_port host_port_identity(const struct host_port *host_port)
{
	struct tracked_port port = { .guid = host_port->cm.ca_guid,
				     .port_num = host_port->port_num };

	memcpy(port.device, host_port->device, sizeof(port.device) - 1);
	return port;
}

/* A renamed device is still ours; its old name may be another device's by now. */
void host_port_follow_name(struct server *server, struct host_port *host_port)
{
	char name[PORTD_DEVICE_BYTES];
	struct tracked_port port;

	server->n_names_read++;
	memcpy(name, host_port->device, sizeof(name));
	umad_device_name(host_port->verbs->device->dev_name, name);
	if (!strcmp(name, host_port->device))
		return;
	log_debug("%s is called %s now", host_port->device, name);
	memcpy(host_port->device, name, sizeof(name));
	host_port->tos = port_file_tos(&server->port_file, name, host_port->port_num);
	if (server->tracker) {
		port = host_port_identity(host_port);
		tracker_rename(server->tracker, host_port->handle, &port);
	}
}

static uint64_t handles_of(const struct server *server, const char *dev_name)
{
	const struct host_port *host_port;
	uint64_t handles = 0;

	for_each_host_port (host_port, server)
		if (!strcmp(host_port->verbs->device->dev_name, dev_name))
			handles |= UINT64_C(1) << host_port->handle;
	return handles;
}

void host_port_group(const struct server *server)
{
	struct host_port *host_port;

	for_each_host_port (host_port, server)
		host_port->of_device = handles_of(server, host_port->verbs->device->dev_name);
}
