/* SPDX-License-Identifier: BSD-2-Clause */
/* Distinguishes busy peers from lost messages: see peer.h. */
#include "cm/peer.h"

#include "cm/action.h"

/* A server with several threads may answer requests out of order. */
#define REORDERED_NS (100 * CM_NS_PER_MS)

/* What a slow server takes for one request, and the limit for any number of them. */
#define EACH_NS	     (16 * CM_NS_PER_MS)
#define CROWD_MAX_NS (2000 * CM_NS_PER_MS)

/*
 * How long a message may keep its slot: a DREQ for an interval and the time of a crowd; others
 * longer, because a stalled peer sends MRA.
 */
#define SLOT_NS		(8000 * CM_NS_PER_MS)
#define SLOT_OF_DREQ_NS (1000 * CM_NS_PER_MS + CROWD_MAX_NS)

/*
 * Interval between two retransmissions to a peer, in which it may send MRA. A peer that answers
 * none of ASKED_MAX is unresponsive, not busy.
 */
#define SPACING_NS (10 * CM_NS_PER_MS)
#define ASKED_MAX  8

static struct cm_key peer_key(const struct cm_conn *conn)
{
	return (struct cm_key){ .gid = mad_path_peer(&conn->path), .id = cm_mad_attr(conn->mad) };
}

static bool awaits_answer(const struct cm_conn *conn)
{
	return hash_is_in(&conn->peer.node.link) || !list_is_empty(&conn->peer.others);
}

/* Return: the representative of all connections that wait for the same answer, or NULL. */
static struct cm_peer *peer_of(struct cm_conn *conn, const struct cm_core *core)
{
	struct cm_key key;
	struct cm_node *node;

	if (hash_is_in(&conn->peer.node.link))
		return &conn->peer;
	key = peer_key(conn);
	node = cm_index_find(&core->peers, &key);
	return node ? container_of(node, struct cm_peer, node) : NULL;
}

void cm_peer_await(struct cm_conn *conn, struct cm_core *core)
{
	struct cm_peer *peer = peer_of(conn, core);
	struct cm_key key = peer_key(conn);

	if (peer) {
		list_append(&peer->others, &conn->peer.others);
	} else {
		peer = &conn->peer;
		peer->stats = (struct cm_peer_stats){ .n_waiting = 0 };
		cm_index_insert(&core->peers, &peer->node, &key);
	}
	peer->stats.n_waiting++;
}

void cm_peer_answered(struct cm_conn *conn, struct cm_core *core, bool is_mra, struct cm_time now)
{
	bool is_repeated = conn->retry.transmissions > 1;
	struct cm_peer_stats *stats;

	if (!awaits_answer(conn))
		return;
	stats = &peer_of(conn, core)->stats;
	if (is_mra || !is_repeated) {
		stats->heard = now;
		stats->n_asked = 0;
	}
	if (is_mra)
		return;
	stats->answered = cm_time_later(stats->answered, conn->retry.first);
	if (is_repeated)
		return;
	stats->round_trip_ns = now.ns - conn->retry.first.ns;
	if (cm_time_reached(stats->slow, conn->retry.first))
		stats->slow.ns = 0;
}

void cm_peer_repeated(struct cm_conn *conn, struct cm_core *core, struct cm_time now)
{
	struct cm_peer_stats *stats;

	if (!awaits_answer(conn))
		return;
	stats = &peer_of(conn, core)->stats;
	if (stats->n_asked < ASKED_MAX) {
		stats->n_asked++;
		stats->next = cm_time_after(now, SPACING_NS);
	}
}

void cm_peer_forget(struct cm_conn *conn, struct cm_core *core)
{
	struct cm_peer *heir = container_of(conn->peer.others.next, struct cm_peer, others);

	if (!awaits_answer(conn))
		return;
	peer_of(conn, core)->stats.n_waiting--;
	if (hash_is_in(&conn->peer.node.link)) {
		cm_index_remove(&core->peers, &conn->peer.node);
		if (heir != &conn->peer) {
			heir->stats = conn->peer.stats;
			cm_index_insert(&core->peers, &heir->node, &conn->peer.node.key);
		}
	}
	list_remove(&conn->peer.others);
}

static bool is_unresponsive(const struct cm_peer_stats *stats)
{
	return stats->n_asked >= ASKED_MAX;
}

static bool is_for_unresponsive_peer(struct cm_conn *conn, const struct cm_core *core)
{
	const struct cm_peer *peer = peer_of(conn, core);

	return peer && (is_unresponsive(&peer->stats) || peer->stats.slow.ns);
}

void cm_pace_init(struct cm_pace *pace)
{
	unsigned int i;

	list_init(&pace->lanes);
	for (i = 0; i < CM_LANES; i++) {
		list_init(&pace->lane[i].waiting);
		list_init(&pace->lane[i].link);
	}
}

void cm_pace_append(struct cm_pace *pace, struct cm_conn *conn)
{
	struct cm_lane *lane = &pace->lane[conn->lane % CM_LANES];

	list_append(&lane->waiting, &conn->waiting);
	if (list_is_empty(&lane->link))
		list_append(&pace->lanes, &lane->link);
}

/* Return: the first of the next lane, removed; NULL if all lanes are empty. */
static struct cm_conn *take_next(struct cm_pace *pace)
{
	struct cm_conn *conn;
	struct cm_lane *lane;

	while (!list_is_empty(&pace->lanes)) {
		lane = container_of(pace->lanes.next, struct cm_lane, link);
		list_remove(&lane->link);
		if (list_is_empty(&lane->waiting))
			continue;
		list_append(&pace->lanes, &lane->link);
		conn = container_of(lane->waiting.next, struct cm_conn, waiting);
		list_remove(&conn->waiting);
		return conn;
	}
	return NULL;
}

struct cm_conn *cm_peer_take_waiting(struct cm_pace *pace, struct cm_port *port,
				     const struct cm_core *core)
{
	struct cm_conn *conn;

	while ((conn = take_next(pace))) {
		if (pace == &port->to_unresponsive || !is_for_unresponsive_peer(conn, core))
			return conn;
		cm_pace_append(&port->to_unresponsive, conn);
	}
	return NULL;
}

struct cm_time cm_peer_slot_until(struct cm_conn *conn, struct cm_core *core, struct cm_time now)
{
	const uint64_t most_ns = conn->state == CM_DREQ_SENT ? SLOT_OF_DREQ_NS : SLOT_NS;
	const struct cm_time until = cm_time_after(conn->retry.first, most_ns);

	if (!cm_time_reached(until, now))
		return until;
	cm_settle(conn, core);
	peer_of(conn, core)->stats.slow = now;
	return CM_TIME_NEVER;
}

/* Extra time for an answer, by the number of messages that wait for one. */
static uint64_t extra_wait_ns(const struct cm_peer_stats *stats)
{
	uint64_t ns = is_unresponsive(stats) ? 0 : (stats->n_waiting - 1) * EACH_NS;

	return ns < CROWD_MAX_NS ? ns : CROWD_MAX_NS;
}

/* Return: the deadline for an answer, counted from when the peer was last heard. */
static struct cm_time answer_deadline(const struct cm_conn *conn, const struct cm_peer_stats *stats)
{
	const struct cm_retry *retry = &conn->retry;
	bool is_first = retry->transmissions == 1;
	struct cm_time since = is_first ? cm_time_later(retry->first, stats->heard) : stats->heard;
	struct cm_time usual = cm_retry_overdue(retry, since);
	uint64_t trip_ns = 2 * stats->round_trip_ns;

	if (is_first && !retry->waits.first_ms)
		usual = cm_time_after(usual, extra_wait_ns(stats));
	if (trip_ns > CROWD_MAX_NS)
		trip_ns = CROWD_MAX_NS;
	return cm_time_later(usual, cm_time_after(since, trip_ns));
}

struct cm_time cm_peer_overdue(struct cm_conn *conn, const struct cm_core *core)
{
	const struct cm_time lost = cm_time_after(conn->retry.first, REORDERED_NS);
	const struct cm_peer *peer = awaits_answer(conn) ? peer_of(conn, core) : NULL;
	struct cm_time overdue = conn->retry.first;

	if (!peer)
		return overdue;
	if (!cm_time_reached(lost, peer->stats.answered))
		overdue = answer_deadline(conn, &peer->stats);
	return cm_time_earlier(cm_time_later(overdue, peer->stats.next), conn->retry.give_up);
}
