/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Connections of a previous cmportd that was killed: see recovery.h. Those of clients that were
 * killed, too, are ended as if their processes had just ended.
 */
#include <unistd.h>

#include "base/hash.h"
#include "base/log.h"
#include "lib/portd/server/files/process.h"
#include "lib/portd/server/ledger/tracked.h"
#include "lib/portd/server/ledger/tracked_adopt.h"
#include "lib/portd/server/routing/recovery.h"
#include "lib/portd/server/routing/router.h"
#include "lib/portd/server/server_state.h"
#include "lib/portd/server/wire/host_port.h"

#define LOOK_NS	       (500 * CM_NS_PER_MS)
#define ORPHANS_A_TURN 512
#define LOOKS_A_TURN   32 /* processes of orphans, with system calls for each */

bool orphans_are_none(const struct server *server)
{
	return !tracker_orphan(server->tracker, NULL);
}

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
	host_port_follow_names(server);
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

struct cm_time orphans_deadline(const struct server *server)
{
	bool is_over = server->grace_until.ns || orphans_are_none(server);

	return is_over ? CM_TIME_NEVER : server->recovery_look_at;
}

/* A part of them in each turn; the list may change between turns. */
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
