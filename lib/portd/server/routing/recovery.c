/* SPDX-License-Identifier: BSD-2-Clause */
/* Clients of a previous cmportd, which resume: see recovery.h. */
#include "lib/portd/server/routing/recovery.h"

#include "base/log.h"
#include "lib/portd/server/files/port_holders.h"
#include "lib/portd/server/files/process.h"
#include "lib/portd/server/files/socket_dir.h"
#include "lib/portd/server/files/state_file.h"
#include "lib/portd/server/ledger/tracked_adopt.h"
#include "lib/portd/server/wire/tracers.h"

_Static_assert(TRACKED_PORTS == HOST_PORTS_MAX, "each host port has a handle");

/* --- beginning and end --------------------------------------------------- */

static void keep_port_holders(struct server *server)
{
	int fd;

	if (socket_dir_open(server->dir, PORT_HOLDERS_SUFFIX, &fd))
		return;
	server->port_holders = port_holders_map(fd);
	ports_keep_holders(server->home->ports, server->port_holders);
}

void recovery_awaited(struct server *server)
{
	ports_end_reservations(server->home->ports);
}

int recovery_open(struct server *server)
{
	struct tracked_store *store;
	int fd, err = socket_dir_take(server->options.path, &server->dir);

	if (err)
		return err;
	server->listening.fd = socket_dir_listen_fd(server->dir);
	server->state_file = socket_dir_state_file(server->dir);
	if (server->options.path && !socket_dir_open(server->dir, RECORDING_SUFFIX, &fd))
		tracer_record(server, fd);
	keep_port_holders(server);
	store = state_file_tracked(server->state_file);
	return store ? tracker_keep(server->tracker, store) : 0;
}

void recovery_close(struct server *server)
{
	port_holders_unmap(server->port_holders);
	socket_dir_leave(server->dir);
}

/* --- clients that resume -------------------------------------------------- */

/* To be asked after its pid was used: until then nobody else can have had that. */
static bool has_own_pid(const struct client *client)
{
	return !process_of_socket_has_ended(client->control.fd);
}

void recovery_welcome(struct server *server, struct client *client)
{
	client->start = state_file_add_client(server->state_file, client->pid);
	if (has_own_pid(client))
		return;
	state_file_remove_client(server->state_file, client->pid);
	client->pid = 0;
	client->start = 0;
}

void recovery_introduce(struct server *server, const struct client *client)
{
	struct tracked_owner owner = { .pid = client->pid > 0 ? (uint32_t)client->pid : 0,
				       .start = client->start,
				       .block = client->n_blocks ? client->block[0] : 0,
				       .user = client->user->number };

	tracker_own(server->tracker, client->index, &owner);
}

bool recovery_awaits(struct server *server)
{
	return state_file_pending(server->state_file) || tracker_awaits_unknown(server->tracker);
}

/* The client has its first block again. All clients of a host may come back at once. */
void recovery_return(struct server *server, const struct client *client)
{
	const uint16_t block = client->block[0];
	const struct tracked *tracked = tracker_orphan_of(server->tracker, block, NULL), *next;

	for (; tracked; tracked = next) {
		next = tracker_orphan_of(server->tracker, block, tracked);
		hosts_know_peer_of(&server->hosts, &tracked->is);
		if (!tracked->is_dead && !tracker_return(server->tracker, tracked, client->index))
			return;
	}
}

void recovery_resumed(struct server *server, const struct client *client)
{
	if (has_own_pid(client))
		state_file_resumed(server->state_file, client->pid);
	tracker_confirm(server->tracker, client->index);
}

/* --- the grace period ------------------------------------------------------ */

/* Who is awaited is looked up once a turn: there may be a list of all connections to go through. */
bool recovery_in_grace(struct server *server)
{
	if (!server->grace_until.ns || server->grace_turn == server->turn_no)
		return server->grace_until.ns != 0;
	server->grace_turn = server->turn_no;
	if (cm_time_reached(server->grace_until, server->now) || !recovery_awaits(server)) {
		server->grace_until.ns = 0;
		recovery_awaited(server);
		log_debug("the grace period is over");
	}
	return server->grace_until.ns != 0;
}
