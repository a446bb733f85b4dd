/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Ways to peers: see peers.h.
 */
#include "mad/peers.h"

#include <string.h>

#define HOLDS_NS	UINT64_C(1000000000)
#define AVOIDED_NS	UINT64_C(10000000000)
#define DOUBLINGS_MAX	8		     /* 43 minutes */
#define FRESH_NS	UINT64_C(2000000000) /* who was reached then is slow, or loses a packet */
#define QUESTION_MAX_NS UINT64_C(3000000000) /* most are answered, repeated or given up by then */

/* --- peers --------------------------------------------------------------- */

static unsigned int slot_of(const struct mad_gid *gid)
{
	return mad_gid_hash(gid, 0, PEERS_LOG2);
}

static bool is_of(const struct peer *peer, const struct mad_gid *gid)
{
	return !memcmp(&peer->gid, gid, sizeof(*gid));
}

static bool is_avoided(const struct way *way, uint64_t now_ns)
{
	return now_ns < way->avoided_until_ns;
}

static struct peer *find(struct peers *peers, const struct mad_gid *gid)
{
	struct peer *peer = &peers->slot[slot_of(gid)];

	return is_of(peer, gid) ? peer : NULL;
}

/* Return: NULL if another one is there who must not be forgotten. */
static struct peer *find_or_take(struct peers *peers, const struct mad_gid *gid, uint64_t now_ns)
{
	struct peer *peer = &peers->slot[slot_of(gid)];

	if (is_of(peer, gid))
		return peer;
	if (is_avoided(&peer->way, now_ns))
		return NULL;
	*peer = (struct peer){ .gid = *gid };
	return peer;
}

/* --- our own queue pair -------------------------------------------------- */

static void avoid(struct way *way, uint64_t now_ns)
{
	way->proven_ns = 0;
	way->avoided_until_ns = now_ns + (AVOIDED_NS << way->n_in_vain);
}

static void was_in_vain(struct way *way, uint64_t now_ns)
{
	avoid(way, now_ns);
	if (way->n_in_vain < DOUBLINGS_MAX)
		way->n_in_vain++;
}

static bool is_fresh(const struct way *way, uint64_t now_ns)
{
	return way->proven_ns && now_ns - way->proven_ns < FRESH_NS;
}

void peers_asked(struct peers *peers, const struct mad_gid *gid, uint32_t id, uint64_t now_ns)
{
	struct peer *peer = find_or_take(peers, gid, now_ns);

	if (!peer || (peer->asked_id && now_ns - peer->asked_ns < QUESTION_MAX_NS))
		return;
	peer->asked_id = id;
	peer->asked_again = false;
	peer->asked_ns = now_ns;
}

static void was_answered(struct peers *peers, struct peer *peer, uint64_t now_ns)
{
	if (!peer->asked_again) {
		peer->way = (struct way){ .proven_ns = now_ns };
		peers->any = peer->way;
		return;
	}
	was_in_vain(&peer->way, now_ns);
	if (!peers->any.proven_ns && !is_avoided(&peers->any, now_ns))
		was_in_vain(&peers->any, now_ns);
}

void peers_answered(struct peers *peers, const struct mad_gid *gid, uint32_t id, uint64_t now_ns)
{
	struct peer *peer = find(peers, gid);

	if (!peer || !id || peer->asked_id != id)
		return;
	peer->asked_id = 0;
	was_answered(peers, peer, now_ns);
}

void peers_missed(struct peers *peers, const struct mad_gid *gid, uint64_t now_ns)
{
	struct peer *peer = find(peers, gid);

	if (peer && !is_fresh(&peer->way, now_ns))
		peer->way.proven_ns = 0;
}

/* Nobody may be there at all, which says nothing about the way: see was_answered(). */
static void try_another_queue_pair(struct peer *peer, uint64_t now_ns)
{
	if (is_fresh(&peer->way, now_ns)) {
		peer->asked_id = 0;
		return;
	}
	peer->asked_again = true;
	avoid(&peer->way, now_ns);
}

/* --- the peer's ---------------------------------------------------------- */

void peers_heard(struct peers *peers, const struct mad_gid *gid, uint32_t qpn, uint64_t now_ns)
{
	struct peer *peer;

	if (qpn <= PEER_QP1)
		return;
	peer = find_or_take(peers, gid, now_ns);
	if (!peer || now_ns < peer->own_avoided_until_ns)
		return;
	peer->qpn = qpn;
	peer->heard_ns = now_ns;
}

/* --- both ---------------------------------------------------------------- */

uint32_t peers_qpn(const struct peers *peers, const struct mad_gid *gid, bool asks, uint64_t now_ns)
{
	static const struct way unknown;
	const struct peer *peer = &peers->slot[slot_of(gid)];
	const struct way *way = &peer->way;

	/* What follows must not overtake what went there: a DREQ its RTU. */
	if (is_of(peer, gid) && peer->qpn && now_ns - peer->heard_ns <= HOLDS_NS)
		return peer->qpn;
	if (!is_of(peer, gid) && !is_avoided(way, now_ns))
		way = &unknown;
	if (way->proven_ns)
		return PEER_QP1;
	return asks && !is_avoided(way, now_ns) && !is_avoided(&peers->any, now_ns) ? PEER_QP1
										    : PEER_BY_UMAD;
}

void peers_unanswered(struct peers *peers, const struct mad_gid *gid, uint32_t id, uint64_t now_ns)
{
	struct peer *peer = find(peers, gid);

	if (!peer)
		return;
	if (peer->qpn)
		peer->own_avoided_until_ns = now_ns + AVOIDED_NS;
	peer->qpn = 0;
	if (id && peer->asked_id == id)
		try_another_queue_pair(peer, now_ns);
}
