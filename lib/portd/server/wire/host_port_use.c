/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Use of host ports. A port that no client has used for a while is closed, and its device with the
 * last of its ports: a driver cannot be unloaded while its device is open.
 */
#include "base/log.h"
#include "lib/portd/server/ledger/tracked_adopt.h"
#include "lib/portd/server/server_state.h"
#include "lib/portd/server/wire/host_port.h"
#include "lib/portd/server/wire/unsent.h"

void host_port_taken(struct client *client, struct host_port *host_port)
{
	uint64_t bit = UINT64_C(1) << host_port->handle;

	if (!(client->host_ports & bit))
		host_port->n_clients++;
	client->host_ports |= bit;
}

void host_port_left(struct server *server, const struct client *client)
{
	struct host_port *host_port;

	for_each_host_port (host_port, server) {
		if (!client_host_port(server, client, host_port->handle))
			continue;
		host_port->n_clients--;
		host_port->unused_at = server->now;
	}
}

struct cm_time host_port_deadline(const struct host_port *host_port)
{
	const struct server_options *options = &host_port->server->options;
	uint64_t s = options->idle_s ? options->idle_s : UNUSED_S;

	if (host_port->n_clients || options->opens_ports || host_port->server->has_one_client)
		return CM_TIME_NEVER;
	return cm_time_after(host_port->unused_at, s * 1000 * CM_NS_PER_MS);
}

/* Messages wait, or connections of ended processes are being disconnected. */
static bool is_needed(const struct server *server, const struct host_port *host_port)
{
	return host_port->n_waiting || server->core.n_conns || !unsent_are_none(server) ||
	       tracker_orphan(server->tracker, NULL);
}

void host_port_expire(struct server *server)
{
	struct host_port *host_port;

	for_each_host_port (host_port, server) {
		if (!cm_time_reached(host_port_deadline(host_port), server->now))
			continue;
		if (is_needed(server, host_port)) {
			host_port->unused_at = server->now; /* check again later */
			continue;
		}
		log_debug("%s port %u is closed: nobody uses it", host_port->device,
			  host_port->port_num);
		host_port_close(server, host_port);
	}
}
