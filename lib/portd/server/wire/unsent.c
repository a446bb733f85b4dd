/* SPDX-License-Identifier: BSD-2-Clause */
/* Requests that are not sent yet: see unsent.h. */
#include "lib/portd/server/wire/unsent.h"

#include <stdlib.h>

#include "lib/portd/server/clients/client_out.h"
#include "lib/portd/server/ledger/tracked.h"
#include "lib/portd/server/server_state.h"
#include "lib/portd/server/wire/host_port.h"
#include "lib/portd/server/wire/waiting.h"

#define HELD_BATCH 64 /* held lanes to look at per turn */

/* The unsent requests of a user to one host. */
struct lane {
	struct list link; /* in user.lanes, in round-robin order; or in user.held_lanes */
	struct cm_node node;
	struct user *user;
	struct list requests;
};

/* --- lanes ---------------------------------------------------------------- */

struct user *unsent_of(struct server *server, const struct client *sender)
{
	return sender ? sender->user : &server->nobody;
}

static struct cm_key key_of(const struct user *user, const struct mad_path *path)
{
	return (struct cm_key){ .gid = mad_path_peer(path), .guid = (uintptr_t)user };
}

static struct lane *find_lane(const struct server *server, const struct user *user,
			      const struct mad_path *path)
{
	const struct cm_key key = key_of(user, path);
	struct cm_node *node = cm_index_find(&server->lanes, &key);

	return node ? container_of(node, struct lane, node) : NULL;
}

static void resume_lane(struct server *server, struct lane *lane)
{
	struct user *user = lane->user;

	list_remove(&lane->link);
	if (list_is_empty(&user->held_lanes))
		list_remove(&user->holds);
	if (list_is_empty(&user->lanes))
		list_append(&server->senders, &user->sends);
	list_append(&user->lanes, &lane->link);
}

/* Its host takes no more requests for now, so that it is not looked at for a while. */
static void hold_lane(struct server *server, struct lane *lane)
{
	struct user *user = lane->user;

	list_remove(&lane->link);
	if (list_is_empty(&user->lanes))
		list_remove(&user->sends);
	if (list_is_empty(&user->held_lanes))
		list_append(&server->holders, &user->holds);
	list_append(&user->held_lanes, &lane->link);
}

static struct lane *lane_new(struct server *server, struct user *user, const struct mad_path *path)
{
	const struct cm_key key = key_of(user, path);
	struct lane *lane = NULL;

	if (cm_index_reserve(&server->lanes, server->lanes.table.n_nodes + 1) == 0)
		lane = calloc(1, sizeof(*lane));
	if (!lane)
		return NULL;
	lane->user = user;
	list_init(&lane->link);
	list_init(&lane->requests);
	cm_index_insert(&server->lanes, &lane->node, &key);
	resume_lane(server, lane);
	return lane;
}

static void lane_free(struct server *server, struct lane *lane)
{
	cm_index_remove(&server->lanes, &lane->node);
	list_remove(&lane->link);
	if (list_is_empty(&lane->user->lanes))
		list_remove(&lane->user->sends);
	if (list_is_empty(&lane->user->held_lanes))
		list_remove(&lane->user->holds);
	free(lane);
}

/* The other users, and the other hosts of this one, come first now. */
static void give_way(struct server *server, struct lane *lane)
{
	struct user *user = lane->user;

	list_remove(&lane->link);
	list_append(&user->lanes, &lane->link);
	list_remove(&user->sends);
	list_append(&server->senders, &user->sends);
}

bool unsent_to(struct server *server, const struct client *sender, const struct mad_path *path)
{
	const struct user *user = unsent_of(server, sender);

	return user->n_requests && find_lane(server, user, path);
}

/* --- requests ------------------------------------------------------------- */

static bool append_to_lane(struct server *server, struct xmit *xmit)
{
	struct user *user = unsent_of(server, xmit->sender);

	xmit->lane = find_lane(server, user, &xmit->path);
	if (!xmit->lane)
		xmit->lane = lane_new(server, user, &xmit->path);
	if (!xmit->lane)
		return false;
	list_append(&xmit->lane->requests, &xmit->link);
	user->n_requests++;
	if (xmit->sender) {
		list_append(&xmit->sender->requests, &xmit->of_sender);
		xmit->sender->n_requests++;
	}
	return true;
}

void unsent_put(struct server *server, struct xmit *xmit)
{
	if (append_to_lane(server, xmit))
		return;
	stat_count(xmit->host_port, PORTD_COUNT_OVERFLOW, xmit->mad);
	free(xmit);
}

/* The lane may be empty then. */
static void remove_from_lane(struct server *server, struct xmit *xmit)
{
	struct client *sender = xmit->sender;

	list_remove(&xmit->link);
	list_remove(&xmit->of_sender);
	xmit->lane->user->n_requests--;
	if (sender && --sender->n_requests == REQUESTS_MAX - 1)
		client_watch_data(server, sender);
}

static struct xmit *take_request(struct server *server, struct xmit *xmit)
{
	struct lane *lane = xmit->lane;

	remove_from_lane(server, xmit);
	if (list_is_empty(&lane->requests))
		lane_free(server, lane);
	return xmit;
}

/* Move the requests to server.nobody, in order; drop those for which there is no room. */
void unsent_forget_sender(struct server *server, struct client *sender)
{
	struct xmit *xmit;

	list_for_each_entry_safe (xmit, &sender->requests, of_sender) {
		take_request(server, xmit)->sender = NULL;
		if (server->nobody.n_requests < NOBODYS_MAX) {
			unsent_put(server, xmit);
			continue;
		}
		stat_count(xmit->host_port, PORTD_COUNT_OVERFLOW, xmit->mad);
		free(xmit);
	}
}

void unsent_port_gone(struct server *server, const struct host_port *host_port)
{
	struct lane *lane;
	struct xmit *xmit;

	hash_for_each_entry_safe (lane, &server->lanes.table, node.link) {
		list_for_each_entry_safe (xmit, &lane->requests, link) {
			if (xmit->host_port != host_port)
				continue;
			remove_from_lane(server, xmit);
			free(xmit);
		}
		if (list_is_empty(&lane->requests))
			lane_free(server, lane);
	}
}

/* --- sending -------------------------------------------------------------- */

/* Limits unanswered REQs: a host drops what its receive queue cannot hold, also other hosts'. */
static bool may_leave(struct server *server, const struct xmit *xmit)
{
	const double rate = quota_of(&server->options.quotas, QUOTA_HOST_RATE) * 0.75;
	const struct mad_gid peer = mad_path_peer(&xmit->path);
	struct host *host = hosts_at(&server->hosts, &peer);

	if (!bucket_take(&host->requests, rate, REQUEST_BURST, server->now))
		return false;
	if (cm_mad_attr(xmit->mad) == CM_ATTR_REJ ||
	    bucket_take(&host->unanswered, UNANSWERED_S, UNANSWERED_MAX, server->now))
		return true;
	bucket_give(&host->requests);
	return false;
}

static void send_request(struct server *server, struct xmit *xmit)
{
	const struct mad_gid peer = mad_path_peer(&xmit->path);

	take_request(server, xmit);
	if (waiting_for(server, xmit->host_port, &xmit->path) || !host_port_try(xmit)) {
		bucket_give(&hosts_at(&server->hosts, &peer)->unanswered);
		waiting_put(server, xmit);
	} else {
		free(xmit);
	}
}

/* The oldest of each user in turn; a limited number, as there may be one for each host. */
static void resume_lanes(struct server *server)
{
	struct user *user;
	unsigned int i;

	if (!cm_time_reached(server->resume_at, server->now))
		return;
	server->resume_at = cm_time_after(server->now, REQUESTS_HOLD_MS * CM_NS_PER_MS);
	for (i = 0; i < HELD_BATCH && !list_is_empty(&server->holders); i++) {
		user = container_of(server->holders.next, struct user, holds);
		list_remove(&user->holds);
		list_append(&server->holders, &user->holds);
		resume_lane(server, container_of(user->held_lanes.next, struct lane, link));
	}
}

void unsent_send(struct server *server)
{
	unsigned int n_sent = 0, n_held = 0;
	struct user *user;
	struct lane *lane;
	struct xmit *xmit;

	resume_lanes(server);
	while (n_sent < SEND_BATCH && n_held < HELD_BATCH && !list_is_empty(&server->senders)) {
		user = container_of(server->senders.next, struct user, sends);
		lane = container_of(user->lanes.next, struct lane, link);
		xmit = container_of(lane->requests.next, struct xmit, link);
		give_way(server, lane);
		if (xmit->again && tracker_is_outdated(server->tracker, xmit->mad)) {
			free(take_request(server, xmit));
			n_sent++;
		} else if (may_leave(server, xmit)) {
			send_request(server, xmit);
			n_sent++;
		} else {
			hold_lane(server, lane);
			n_held++;
		}
	}
	server->requests_left = !list_is_empty(&server->senders);
}

bool unsent_are_none(const struct server *server)
{
	return list_is_empty(&server->senders) && list_is_empty(&server->holders);
}
