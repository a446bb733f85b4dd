/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The device of a host port, and its handle. The kernel numbers devices ("uverbs0"); the names that
 * clients use may change while devices are open, or while no cmportd had them open.
 */
#include <endian.h>
#include <string.h>

#include "base/fd.h"
#include "base/log.h"
#include "lib/portd/server/ledger/tracked_adopt.h"
#include "lib/portd/server/server_state.h"
#include "lib/portd/server/wire/host_port.h"
#include "mad/umad_owner.h"

/* What the state file has of a host port. */
static struct tracked_port identity_of(const struct host_port *host_port)
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

	memcpy(name, host_port->device, sizeof(name));
	umad_device_name(host_port->verbs->device->dev_name, name);
	if (!strcmp(name, host_port->device))
		return;
	log_debug("%s is called %s now", host_port->device, name);
	memcpy(host_port->device, name, sizeof(name));
	host_port->tos = port_file_tos(&server->port_file, name, host_port->port_num);
	if (server->tracker) {
		port = identity_of(host_port);
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

/* --- handles, which the state file keeps with the names --------------------- */

static uint64_t handles_in_use(struct server *server)
{
	struct host_port *host_port;
	uint64_t in_use = 0;

	for_each_host_port (host_port, server)
		in_use |= UINT64_C(1) << host_port->handle;
	return in_use;
}

static bool is_stored(const struct tracker *tracker, const struct tracked_port *port,
		      const char *name)
{
	struct tracked_port its;
	uint8_t i;

	for (i = 0; i < TRACKED_PORTS; i++)
		if (tracker_port(tracker, i, &its) && its.guid == port->guid &&
		    its.port_num == port->port_num && !strcmp(its.device, name))
			return true;
	return false;
}

/*
 * Devices may have the same GUID: one that has the name was not renamed, and none gets the name of
 * another stored port. Return: the name, or NULL if it has not changed or there is no such device.
 */
static const char *find_new_name(const struct tracker *tracker, struct ibv_device **list,
				 const struct tracked_port *port)
{
	const char *found = NULL, *name;
	int i;

	for (i = 0; list[i]; i++) {
		if (be64toh(ibv_get_device_guid(list[i])) != port->guid)
			continue;
		name = ibv_get_device_name(list[i]);
		if (!strcmp(name, port->device))
			return NULL;
		if (!is_stored(tracker, port, name))
			found = name;
	}
	return found;
}

/* Devices may have been renamed while no cmportd had them open. */
void host_port_follow_names(struct server *server)
{
	struct ibv_device **list = fd_check_for_verbs() ? NULL : ibv_get_device_list(NULL);
	uint64_t in_use = handles_in_use(server);
	struct tracked_port port;
	const char *name;
	uint8_t i;

	for (i = 0; list && i < TRACKED_PORTS; i++) {
		if (in_use >> i & 1 || !tracker_port(server->tracker, i, &port) || !port.guid)
			continue;
		name = find_new_name(server->tracker, list, &port);
		if (!name)
			continue;
		log_debug("%s is called %s now", port.device, name);
		strncpy(port.device, name, sizeof(port.device) - 1);
		tracker_rename(server->tracker, i, &port);
	}
	if (list)
		ibv_free_device_list(list);
}

int host_port_choose_handle(struct server *server, const struct host_port *opened)
{
	const struct tracked_port port = identity_of(opened);

	host_port_follow_names(server);
	return tracker_handle(server->tracker, &port, handles_in_use(server));
}
