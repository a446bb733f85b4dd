/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What survives a cmportd: its socket directory, and the connections left behind when it was
 * killed. Clients that resume report theirs; connections of clients that were killed too are ended
 * as if their processes had just ended.
 */
#include <endian.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/log.h"
#include "lib/portd/server/port_holders.h"
#include "lib/portd/server/process.h"
#include "lib/portd/server/socket_dir.h"
#include "lib/portd/server/state.h"
#include "lib/portd/server/state_file.h"

#define LOOK_NS	       (500 * CM_NS_PER_MS)
#define ORPHANS_A_TURN 512
#define LOOKS_A_TURN   32 /* processes of orphans, with system calls for each */

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

static void end_port_reservations(struct server *server)
{
	ports_end_reservations(server->home->ports);
}

static int take_dir(struct server *server)
{
	struct tracked_store *store;
	int fd, err = socket_dir_take(server->options.path, &server->dir);

	if (err)
		return err;
	server->listening.fd = socket_dir_listen_fd(server->dir);
	server->state_file = socket_dir_state_file(server->dir);
	if (server->options.tracing && !socket_dir_open(server->dir, RECORDING_SUFFIX, &fd))
		server->options.tracing->record(server, fd);
	keep_port_holders(server);
	store = state_file_tracked(server->state_file);
	return store ? tracker_keep(server->tracker, store) : 0;
}

static void leave_dir(struct server *server)
{
	port_holders_unmap(server->port_holders);
	socket_dir_leave(server->dir);
}

static bool has_no_orphans(const struct server *server)
{
	return !tracker_orphan(server->tracker, NULL);
}

static uint16_t next_id_block(const struct server *server)
{
	return state_file_next_block(server->state_file);
}

static uint16_t take_id_block(struct server *server, unsigned int skip)
{
	return state_file_id_block(server->state_file, skip);
}

static uint64_t lend_ids(struct server *server, uint16_t block)
{
	return state_file_lend(server->state_file, block);
}

static bool were_ids_lent(struct server *server, uint16_t block, uint64_t secret)
{
	return state_file_was_lent(server->state_file, block, secret);
}

/* --- clients that resume -------------------------------------------------- */

/* To be asked after its pid was used: until then nobody else can have had that. */
static bool has_own_pid(const struct client *client)
{
	return !process_of_socket_has_ended(client->control.fd);
}

static void record_client(struct server *server, struct client *client)
{
	client->start = state_file_add_client(server->state_file, client->pid);
	if (has_own_pid(client))
		return;
	state_file_remove_client(server->state_file, client->pid);
	client->pid = 0;
	client->start = 0;
}

static void remove_client(struct server *server, const struct client *client)
{
	state_file_remove_client(server->state_file, client->pid);
}

static void set_owner(struct server *server, const struct client *client)
{
	struct tracked_owner owner = { .pid = client->pid > 0 ? (uint32_t)client->pid : 0,
				       .start = client->start,
				       .block = client->n_blocks ? client->block[0] : 0,
				       .user = client->user->number };

	tracker_own(server->tracker, client->index, &owner);
}

static bool may_any_resume(struct server *server)
{
	return state_file_pending(server->state_file) || tracker_awaits_unknown(server->tracker);
}

/* The client has its first block again. All clients of a host may come back at once. */
static void return_orphans_to(struct server *server, const struct client *client)
{
	const uint16_t block = client->block[0];
	const struct tracked *tracked = tracker_orphan_of(server->tracker, block, NULL), *next;

	for (; tracked; tracked = next) {
		next = tracker_orphan_of(server->tracker, block, tracked);
		strangers_know_peer_of(&server->strangers_rate, &tracked->is);
		if (!tracked->is_dead && !tracker_return(server->tracker, tracked, client->index))
			return;
	}
}

static void forget_unconfirmed(struct server *server, const struct client *client)
{
	if (has_own_pid(client))
		state_file_resumed(server->state_file, client->pid);
	tracker_confirm(server->tracker, client->index);
}

/* --- ports --------------------------------------------------------------- */

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
static void follow_names(struct server *server)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
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

/* --- clients that do not -------------------------------------------------- */

/* A process is looked up once per LOOK_NS, in whatever order its connections are. */
static bool is_alive(struct server *server, const struct tracked_owner *owner)
{
	const uint64_t hash = hash_bytes(&owner->pid, sizeof(owner->pid));
	struct process_look *last = &server->process_look[hash % PROCESS_LOOKS];
	int fd = -1;

	if (owner->pid == last->pid && owner->start == last->start &&
	    !cm_time_reached(cm_time_after(last->at, LOOK_NS), server->now))
		return last->is_alive;
	server->n_process_looks++;
	*last = (struct process_look){ .pid = owner->pid,
				       .start = owner->start,
				       .at = server->now };
	last->is_alive = process_watch((pid_t)owner->pid, owner->start, &fd) &&
			 !process_has_ended((pid_t)owner->pid, fd);
	if (fd >= 0)
		close(fd);
	return last->is_alive;
}

/*
 * A process that is stopped for longer than the grace period keeps its connections, as it would
 * with the kernel.
 */
static bool may_resume(struct server *server, const struct tracked *tracked)
{
	if (tracked->is_dead)
		return false;
	if (server->block_owner[tracked->owner.block] != NOBODY)
		return true; /* it is reporting them */
	return tracked->owner.pid && is_alive(server, &tracked->owner);
}

static bool has_host_port(struct server *server, uint8_t handle)
{
	struct umad_owner who = { .what = "" };
	struct host_port *host_port = server->host_port[handle];
	struct tracked_port port;

	if (host_port)
		return true;
	follow_names(server);
	if (tracker_port(server->tracker, handle, &port) &&
	    host_port_open(server, port.device, port.port_num, &host_port, &who))
		log_warn("%s port %u cannot be opened to end connections of programs that "
			 "are gone%s%s",
			 port.device, port.port_num, who.what[0] ? ": " : "", who.what);
	return server->host_port[handle] != NULL;
}

/* Return: false if other orphans were removed as well. */
static bool end_orphan(struct server *server, const struct tracked *orphan)
{
	uint8_t handle = orphan->is.handle;
	struct cm_record tracked;

	if (!has_host_port(server, handle)) {
		tracker_port_gone(server->tracker, handle);
		return false;
	}
	tracker_adopt(server->tracker, orphan, &tracked);
	router_reap(server, &tracked);
	return true;
}

static struct cm_time next_look(const struct server *server)
{
	bool is_over = server->grace_until.ns || has_no_orphans(server);

	return is_over ? CM_TIME_NEVER : server->recovery_look_at;
}

/* A part of them in each turn; the list may change between turns. */
static void end_orphans(struct server *server)
{
	const uint64_t most_looks = server->n_process_looks + LOOKS_A_TURN;
	const struct tracked *tracked = server->next_orphan, *next;
	unsigned int n;

	if (has_no_orphans(server) || server_in_grace(server) ||
	    !cm_time_reached(server->recovery_look_at, server->now))
		return;
	if (!tracked || !tracked->is_orphan)
		tracked = tracker_orphan(server->tracker, NULL);
	for (n = 0; tracked && n < ORPHANS_A_TURN && server->n_process_looks < most_looks;
	     n++, tracked = next) {
		next = tracker_orphan(server->tracker, tracked);
		if (!may_resume(server, tracked) && !end_orphan(server, tracked)) {
			server->next_orphan = NULL;
			return;
		}
	}
	server->next_orphan = tracked;
	if (!tracked)
		server->recovery_look_at = cm_time_after(server->now, LOOK_NS);
}

static int choose_handle(struct server *server, const struct host_port *opened)
{
	const struct tracked_port port = host_port_identity(opened);

	follow_names(server);
	return tracker_handle(server->tracker, &port, handles_in_use(server));
}

const struct server_recovery server_recovery_from_files = {
	.open = take_dir,
	.close = leave_dir,
	.next_block = next_id_block,
	.id_block = take_id_block,
	.lend = lend_ids,
	.was_lent = were_ids_lent,
	.welcome = record_client,
	.introduce = set_owner,
	.dismiss = remove_client,
	.returns = return_orphans_to,
	.resumed = forget_unconfirmed,
	.awaits = may_any_resume,
	.awaited = end_port_reservations,
	.is_none = has_no_orphans,
	.settle = end_orphans,
	.deadline = next_look,
	.handle = choose_handle,
};
