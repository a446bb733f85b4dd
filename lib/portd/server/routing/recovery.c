/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a previous cmportd that was killed has left: see recovery.h. Connections of clients that
 * were killed, too, are ended as if their processes had just ended.
 */
#include "lib/portd/server/routing/recovery.h"

#include <errno.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "lib/portd/server/files/port_holders.h"
#include "lib/portd/server/files/process.h"
#include "lib/portd/server/files/socket_dir.h"
#include "lib/portd/server/files/state_file.h"
#include "lib/portd/server/ledger/tracked_adopt.h"
#include "lib/portd/server/routing/router.h"
#include "lib/portd/server/wire/host_port.h"
#include "lib/portd/server/wire/recording.h"

#define GRACE_NS       (3000 * CM_NS_PER_MS)  /* without a client that resumes */
#define GRACE_MOST_NS  (10000 * CM_NS_PER_MS) /* less than PORTD_ANSWER_MS: others wait */
#define CLOSING_NS     (3000 * CM_NS_PER_MS)
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

int recovery_open(struct server *server)
{
	struct tracked_store *store;
	int fd, err = socket_dir_take(server->options.path, &server->dir);

	if (err)
		return err;
	server->listening.fd = socket_dir_listen_fd(server->dir);
	server->state_file = socket_dir_state_file(server->dir);
	if (server->options.path && !socket_dir_open(server->dir, RECORDING_SUFFIX, &fd))
		recording_begin(server, fd);
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

void recovery_await_more(struct server *server)
{
	const struct cm_time most = cm_time_after(server->begun_at, GRACE_MOST_NS);

	if (server->grace_until.ns)
		server->grace_until = cm_time_earlier(cm_time_after(server->now, GRACE_NS), most);
}

/* A client without pid has shown the secret of its comm ids instead. */
static bool was_awaited(struct server *server, const struct client *client)
{
	if (!client->pid)
		return client->n_blocks != 0;
	return has_own_pid(client) && state_file_resumed(server->state_file, client->pid);
}

void recovery_resumed(struct server *server, const struct client *client)
{
	if (was_awaited(server, client))
		recovery_await_more(server);
	tracker_confirm(server->tracker, client->index);
}

/* --- the grace period ------------------------------------------------------ */

/* On a busy host it may have taken seconds to come so far. */
void recovery_begin(struct server *server)
{
	server->now = server->begun_at = clock_now();
	if (recovery_awaits(server))
		server->grace_until = cm_time_after(server->now, GRACE_NS);
	else
		ports_end_reservations(server->home->ports);
}

/* Who is awaited is looked up once a turn: there may be a list of all connections to go through. */
bool recovery_in_grace(struct server *server)
{
	if (!server->grace_until.ns || server->grace_turn == server->turn_no)
		return server->grace_until.ns != 0;
	server->grace_turn = server->turn_no;
	if (cm_time_reached(server->grace_until, server->now) || !recovery_awaits(server)) {
		server->grace_until.ns = 0;
		server->asks_again = true; /* deferred requests can be answered now */
		ports_end_reservations(server->home->ports);
		log_debug("the grace period is over");
	}
	return server->grace_until.ns != 0;
}

/* --- connections that nobody will resume ----------------------------------- */

bool orphans_are_none(const struct server *server)
{
	return !tracker_has_orphans(server->tracker);
}

/* A process is looked up once for all its connections, which are neighbours. */
static bool is_alive(struct server *server, const struct tracked_owner *owner)
{
	struct process_look *last = &server->process_look;
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

bool recovery_port_is_closing(const struct server *server, int err)
{
	return (err == -EADDRINUSE || err == -EBUSY) &&
	       !cm_time_reached(cm_time_after(server->begun_at, CLOSING_NS), server->now);
}

/* Return: when to open a port again that could not be opened; 0: never. */
static uint64_t open_again_ns(const struct server *server, int err)
{
	if (recovery_port_is_closing(server, err))
		return OPEN_AGAIN_NS;
	return err == -EMFILE || err == -ENFILE || err == -ENOMEM ? LOOK_NS : 0;
}

/* Orphans of this handle, or of another one that the port gets, may be removed. */
static void open_host_port(struct server *server, uint8_t handle)
{
	struct umad_owner who = { .what = "" };
	struct host_port *host_port;
	struct tracked_port port;
	uint64_t again_ns;
	int err = 0;

	host_port_follow_names(server);
	if (tracker_port(server->tracker, handle, &port))
		err = host_port_open(server, port.device, port.port_num, &host_port, &who);
	again_ns = open_again_ns(server, err);
	if (again_ns) {
		server->recovery_look_at = cm_time_after(server->now, again_ns);
		return;
	}
	if (err)
		log_warn("%s port %u cannot be opened to end connections of programs that "
			 "are gone%s%s",
			 port.device, port.port_num, who.what[0] ? ": " : "", who.what);
	if (!server->host_port[handle])
		tracker_port_gone(server->tracker, handle);
}

/* Return: false if its port had to be opened: any orphan may have been removed. */
static bool end_orphan(struct server *server, const struct tracked *orphan)
{
	const uint16_t lane = orphan->owner.block; /* which user it is of is not known */
	struct cm_record tracked;

	if (!server->host_port[orphan->is.handle]) {
		open_host_port(server, orphan->is.handle);
		return false;
	}
	tracker_adopt(server->tracker, orphan, &tracked);
	router_reap(server, &tracked, lane);
	return true;
}

struct cm_time orphans_deadline(const struct server *server)
{
	bool is_over = server->grace_until.ns || orphans_are_none(server);

	return is_over ? CM_TIME_NEVER : server->recovery_look_at;
}

/* Ends a part of them in each turn; the list may change between turns. */
void orphans_end(struct server *server)
{
	const uint64_t most_looks = server->n_process_looks + LOOKS_A_TURN;
	const struct tracked *tracked = server->next_orphan, *next;
	unsigned int n;

	if (orphans_are_none(server) || recovery_in_grace(server) ||
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
