/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which peers are busy, and which have lost something: see peer.h.
 */
#include "cm/peer.h"

#include "cm/action.h"

/* A server with several threads does not answer in the order of the requests. */
#define REORDERED_NS (100 * CM_NS_PER_MS)

static struct cm_key peer_key(const struct cm_conn *conn)
{
	return (struct cm_key){ .gid = cm_peer_gid(&conn->path), .id = cm_mad_attr(conn->mad) };
}

static bool awaits_answer(const struct cm_conn *conn)
{
	return hash_is_in(&conn->peer.node.link) || !list_is_empty(&conn->peer.others);
}

/* Return: what stands for all connections that wait for the same of a peer, or NULL. */
static struct cm_peer *peer_of(const struct cm_conn *conn, const struct cm_core *core)
{
	struct cm_key key = peer_key(conn);
	struct cm_node *node = cm_index_find(&core->peers, &key);

	return node ? container_of(node, struct cm_peer, node) : NULL;
}

static void stand_for_all(struct cm_peer *peer, const struct cm_key *key, struct cm_core *core)
{
	cm_index_insert(&core->peers, &peer->node, key);
}

void cm_peer_await(struct cm_conn *conn, struct cm_core *core)
{
	struct cm_peer *peer = peer_of(conn, core);
	struct cm_key key = peer_key(conn);

	if (peer)
		list_append(&peer->others, &conn->peer.others);
	else
		stand_for_all(&conn->peer, &key, core);
}

void cm_peer_answered(const struct cm_conn *conn, struct cm_core *core, struct cm_time now)
{
	struct cm_peer *peer;

	if (!awaits_answer(conn))
		return;
	peer = peer_of(conn, core);
	peer->heard = now;
	peer->answered = cm_time_later(peer->answered, conn->retry.first);
}

void cm_peer_forget(struct cm_conn *conn, struct cm_core *core)
{
	struct cm_peer *heir = container_of(conn->peer.others.next, struct cm_peer, others);

	if (hash_is_in(&conn->peer.node.link)) {
		cm_index_remove(&core->peers, &conn->peer.node);
		if (heir != &conn->peer) {
			heir->heard = conn->peer.heard;
			heir->answered = conn->peer.answered;
			stand_for_all(heir, &conn->peer.node.key, core);
		}
	}
	list_remove(&conn->peer.others);
}

struct cm_time cm_peer_overdue(const struct cm_conn *conn, const struct cm_core *core)
{
	const struct cm_time lost = cm_time_after(conn->retry.first, REORDERED_NS);
	const struct cm_peer *peer = awaits_answer(conn) ? peer_of(conn, core) : NULL;

	if (!peer || cm_time_reached(lost, peer->answered))
		return conn->retry.first;
	return cm_retry_overdue(&conn->retry, peer->heard);
}
