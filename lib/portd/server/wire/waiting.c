/* SPDX-License-Identifier: BSD-2-Clause */
/* Messages that wait for their next hop: see waiting.h. */
#include "lib/portd/server/wire/waiting.h"

#include <stdlib.h>

#include "lib/net/hop.h"
#include "lib/portd/server/clients/user.h"
#include "lib/portd/server/server_state.h"
#include "lib/portd/server/wire/host_port.h"
#include "lib/portd/server/wire/unsent.h"

/* A hop that messages to a peer wait for. */
struct hop {
	struct list link; /* in waiting.in_order */
	struct cm_node node;
	struct host_port *host_port;
	uint8_t sgid_index;
	struct mad_gid dgid;
	union addr next; /* the address without a link address */
	bool has_news;
	struct cm_time looked_at;
	struct list messages;
};

int waiting_init(struct waiting *waiting, uint64_t secret)
{
	int err = cm_index_init(&waiting->hops, secret);

	list_init(&waiting->in_order);
	waiting->look_at = CM_TIME_NEVER;
	return err ? err : cm_index_reserve(&waiting->hops, WAITING_MAX);
}

void waiting_fini(struct waiting *waiting)
{
	cm_index_fini(&waiting->hops);
}

/* --- hops ---------------------------------------------------------------- */

static struct cm_key key_of(const struct host_port *host_port, const struct mad_path *path)
{
	return (struct cm_key){ .gid = path->dgid,
				.id = (uint32_t)host_port->handle << 8 | path->sgid_index };
}

static struct hop *find_hop(struct server *server, const struct host_port *host_port,
			    const struct mad_path *path)
{
	const struct cm_key key = key_of(host_port, path);
	struct cm_node *node = cm_index_find(&server->waiting.hops, &key);

	return node ? container_of(node, struct hop, node) : NULL;
}

static void look_by(struct server *server, struct cm_time when)
{
	server->waiting.look_at = cm_time_earlier(server->waiting.look_at, when);
}

static struct cm_time next_look(const struct hop *hop)
{
	return cm_time_after(hop->looked_at, WAITING_LOOK_MS * CM_NS_PER_MS);
}

static void find_next(struct hop *hop)
{
	hop_next(hop->host_port->verbs, hop->host_port->port_num, hop->sgid_index, &hop->dgid,
		 &hop->next);
}

/* Its neighbour has just been checked. */
static struct hop *hop_new(struct server *server, const struct xmit *xmit)
{
	const struct cm_key key = key_of(xmit->host_port, &xmit->path);
	struct hop *hop = calloc(1, sizeof(*hop));

	if (!hop)
		return NULL;
	hop->host_port = xmit->host_port;
	hop->sgid_index = xmit->path.sgid_index;
	hop->dgid = xmit->path.dgid;
	hop->looked_at = server->now;
	find_next(hop);
	list_init(&hop->messages);
	cm_index_insert(&server->waiting.hops, &hop->node, &key);
	list_append(&server->waiting.in_order, &hop->link);
	look_by(server, next_look(hop));
	return hop;
}

static void hop_free(struct server *server, struct hop *hop)
{
	cm_index_remove(&server->waiting.hops, &hop->node);
	list_remove(&hop->link);
	free(hop);
}

/* --- messages ------------------------------------------------------------ */

bool waiting_for(struct server *server, const struct host_port *host_port,
		 const struct mad_path *path)
{
	return server->waiting.hops.table.n_nodes && find_hop(server, host_port, path);
}

static bool append_to_hop(struct server *server, struct xmit *xmit)
{
	struct hop *hop = find_hop(server, xmit->host_port, &xmit->path);

	if (!hop)
		hop = hop_new(server, xmit);
	if (!hop)
		return false;
	list_append(&hop->messages, &xmit->link);
	xmit->host_port->n_waiting++;
	unsent_of(server, xmit->sender)->n_waits++;
	if (xmit->sender)
		xmit->sender->n_waits++;
	return true;
}

static struct xmit *take_off_hop(struct server *server, struct xmit *xmit)
{
	list_remove(&xmit->link);
	xmit->host_port->n_waiting--;
	unsent_of(server, xmit->sender)->n_waits--;
	if (xmit->sender)
		xmit->sender->n_waits--;
	return xmit;
}

/* Leaves room for other users: a single user gets at most half of it. */
static bool may_wait(struct server *server, const struct host_port *host_port,
		     const struct client *sender)
{
	const struct user *user = unsent_of(server, sender);

	return (sender ? sender->n_waits : user->n_waits) < WAITS_MAX &&
	       (user->n_waits < WAITS_FEW || user->n_waits + host_port->n_waiting < WAITING_MAX);
}

void waiting_put(struct server *server, struct xmit *xmit)
{
	if (xmit->sender && !waiting_for(server, xmit->host_port, &xmit->path))
		user_end_turn(xmit->sender); /* the check took long */
	if (may_wait(server, xmit->host_port, xmit->sender) && append_to_hop(server, xmit))
		return;
	stat_count(xmit->host_port, PORTD_COUNT_OVERFLOW, xmit->mad);
	free(xmit);
}

void waiting_forget_sender(struct server *server, struct client *sender)
{
	struct xmit *xmit;
	struct hop *hop;

	if (!sender->n_waits)
		return;
	list_for_each_entry (hop, &server->waiting.in_order, link)
		list_for_each_entry (xmit, &hop->messages, link)
			if (xmit->sender == sender)
				xmit->sender = NULL;
	sender->user->n_waits -= sender->n_waits;
	server->nobody.n_waits += sender->n_waits;
	sender->n_waits = 0;
}

void waiting_port_gone(struct server *server, const struct host_port *host_port)
{
	struct xmit *xmit;
	struct hop *hop;

	hash_for_each_entry_safe (hop, &server->waiting.hops.table, node.link) {
		if (hop->host_port != host_port)
			continue;
		list_for_each_entry_safe (xmit, &hop->messages, link)
			free(take_off_hop(server, xmit));
		hop_free(server, hop);
	}
}

/* --- announcements -------------------------------------------------------- */

void waiting_neighbour(struct server *server, const union addr *addr)
{
	struct hop *hop;

	list_for_each_entry_safe (hop, &server->waiting.in_order, link) {
		if (hop->has_news || !addr_same_ip(&hop->next, addr))
			continue;
		hop->has_news = true;
		list_remove(&hop->link);
		list_prepend(&server->waiting.in_order, &hop->link);
		look_by(server, server->now);
	}
}

void waiting_moved(struct server *server)
{
	struct waiting *waiting = &server->waiting;

	waiting->moved_at = server->now;
	if (!list_is_empty(&waiting->in_order))
		look_by(server, server->now);
}

/* --- checks --------------------------------------------------------------- */

struct looks {
	unsigned int n_in_vain;
	unsigned int n_left; /* messages sent or dropped */
};

/* After a change of routes the hop is checked at once, as if the neighbour were new. */
static struct cm_time look_at(const struct server *server, const struct hop *hop)
{
	struct cm_time when;

	if (hop->has_news)
		return server->now;
	when = hop->looked_at.ns < server->waiting.moved_at.ns ? server->now : next_look(hop);
	return when.ns > server->waiting.pause_until.ns ? when : server->waiting.pause_until;
}

static void leave_as_far_as_possible(struct server *server, struct hop *hop, struct looks *looks)
{
	bool is_late, is_reached = true;
	struct xmit *xmit;

	list_for_each_entry_safe (xmit, &hop->messages, link) {
		if (looks->n_left == WAITING_LEAVES_MAX)
			return;
		is_late = cm_time_reached(xmit->deadline, server->now);
		if (is_late)
			stat_count(xmit->host_port, PORTD_COUNT_UNSENT, xmit->mad);
		else
			is_reached = is_reached && host_port_try(xmit);
		if (!is_late && !is_reached)
			continue; /* a later one may be late: those of ended programs wait longer */
		looks->n_left++;
		free(take_off_hop(server, xmit));
	}
	if (list_is_empty(&hop->messages)) {
		hop_free(server, hop);
		return;
	}
	looks->n_in_vain++;
	if (hop->looked_at.ns < server->waiting.moved_at.ns)
		find_next(hop);
	hop->looked_at = server->now;
	hop->has_news = false;
	list_remove(&hop->link);
	list_append(&server->waiting.in_order, &hop->link);
}

/* Return: the hop to check next; NULL if none is due. */
static struct hop *first_due(struct server *server)
{
	struct list *hops = &server->waiting.in_order;
	struct hop *hop = container_of(hops->next, struct hop, link);

	if (list_is_empty(hops) || !cm_time_reached(look_at(server, hop), server->now))
		return NULL;
	return hop;
}

void waiting_look(struct server *server)
{
	struct waiting *waiting = &server->waiting;
	struct looks looks = { 0, 0 };
	struct hop *hop;

	if (!cm_time_reached(waiting->look_at, server->now))
		return;
	while (looks.n_in_vain < WAITING_LOOKS_MAX && looks.n_left < WAITING_LEAVES_MAX &&
	       (hop = first_due(server)))
		leave_as_far_as_possible(server, hop, &looks);
	if (looks.n_in_vain == WAITING_LOOKS_MAX)
		waiting->pause_until = cm_time_after(server->now, WAITING_PAUSE_MS * CM_NS_PER_MS);
	waiting->look_at = CM_TIME_NEVER;
	if (!list_is_empty(&waiting->in_order))
		look_by(server,
			look_at(server, container_of(waiting->in_order.next, struct hop, link)));
}
