/* SPDX-License-Identifier: BSD-2-Clause */
/* Ways to reach peers: see peers.h. */
#include "mad/peers.h"

#include <errno.h>
#include <string.h>

#define HOLDS_NS      UINT64_C(1000000000)
#define FRESH_NS      UINT64_C(2000000000) /* a peer reached since is slow, or lost a packet */
#define BUCKETS_FIRST 64

/* --- peers --------------------------------------------------------------- */

int peers_init(struct peers *peers)
{
	*peers = (struct peers){ .n_peers = 0 };
	slab_init(&peers->slab, sizeof(struct peer));
	list_init(&peers->used);
	list_init(&peers->probed);
	return hash_init(&peers->by_gid, BUCKETS_FIRST);
}

void peers_fini(struct peers *peers)
{
	hash_fini(&peers->by_gid);
	slab_fini(&peers->slab);
}

static uint64_t hash_of(const struct mad_gid *gid)
{
	return hash_bytes(gid, sizeof(*gid));
}

static struct peer *find_peer(const struct peers *peers, const struct mad_gid *gid)
{
	struct peer *peer;

	hash_for_each_match_entry (peer, &peers->by_gid, hash_of(gid), by_gid)
		if (!memcmp(&peer->path.dgid, gid, sizeof(*gid)))
			return peer;
	return NULL;
}

static void set_way(struct peers *peers, struct peer *peer, enum way way)
{
	peers->n[peer->way]--;
	peers->n[way]++;
	peer->way = way;
	list_remove(&peer->probed);
	if (way == WAY_PROBED)
		list_prepend(&peers->probed, &peer->probed); /* due at once */
}

static void forget_peer(struct peers *peers, struct peer *peer)
{
	hash_remove(&peers->by_gid, &peer->by_gid);
	list_remove(&peer->used);
	list_remove(&peer->probed);
	peers->n[peer->way]--;
	peers->n_peers--;
	slab_give(&peers->slab, peer);
}

static struct peer *add_peer(struct peers *peers, const struct mad_gid *gid)
{
	struct peer *peer;

	if (peers->n_peers == PEERS_MAX)
		forget_peer(peers, container_of(peers->used.next, struct peer, used));
	if (hash_reserve(&peers->by_gid, peers->n_peers + 1))
		return NULL;
	peer = slab_take(&peers->slab);
	if (!peer)
		return NULL;
	*peer = (struct peer){ .path.dgid = *gid };
	list_init(&peer->used);
	list_init(&peer->probed);
	hash_insert(&peers->by_gid, &peer->by_gid, hash_of(gid));
	peers->n[WAY_UNKNOWN]++;
	peers->n_peers++;
	return peer;
}

/* Return: the peer, added if new; NULL when out of memory. */
static struct peer *use_peer(struct peers *peers, const struct mad_gid *gid)
{
	struct peer *peer = find_peer(peers, gid);

	if (!peer)
		peer = add_peer(peers, gid);
	if (!peer)
		return NULL;
	list_remove(&peer->used);
	list_append(&peers->used, &peer->used);
	return peer;
}

/* --- the fast path ------------------------------------------------------- */

static bool is_hopeless(const struct peers *peers)
{
	return !peers->n[WAY_WORKS] && peers->n[WAY_FAILS] >= PEERS_LOST;
}

static void begin_round(struct peers *peers, struct peer *peer, uint64_t now_ns)
{
	if (now_ns < peer->again_ns || (is_hopeless(peers) && now_ns < peers->again_ns))
		return;
	peers->again_ns = now_ns + PROBE_AVOIDED_NS;
	peer->n_probes = 0;
	peer->is_alive = false;
	peer->due_ns = now_ns;
	set_way(peers, peer, WAY_PROBED);
}

/* Messages must not overtake earlier ones to that queue pair, such as DREQ its RTU. */
static bool has_own_qpn(const struct peer *peer, uint64_t now_ns)
{
	return peer->qpn && now_ns - peer->heard_ns <= HOLDS_NS;
}

static uint32_t qpn_of(const struct peer *peer, uint64_t now_ns)
{
	if (has_own_qpn(peer, now_ns))
		return peer->qpn;
	return peer->way == WAY_WORKS ? PEER_QP1 : PEER_BY_UMAD;
}

uint32_t peers_asked(struct peers *peers, const struct mad_path *path, uint64_t now_ns)
{
	struct peer *peer = use_peer(peers, &path->dgid);

	if (!peer)
		return PEER_BY_UMAD;
	peer->path = *path;
	if (peer->way == WAY_UNKNOWN || peer->way == WAY_FAILS)
		begin_round(peers, peer, now_ns);
	return qpn_of(peer, now_ns);
}

/* A peer that sent nothing at all may be down, which proves nothing about the fast path. */
static void end_round(struct peers *peers, struct peer *peer, uint64_t now_ns)
{
	peer->again_ns = now_ns + (PROBE_AVOIDED_NS << peer->n_failed);
	if (!peer->is_alive) {
		set_way(peers, peer, WAY_UNKNOWN);
		return;
	}
	if (peer->n_failed < PROBE_DOUBLINGS)
		peer->n_failed++;
	if (!peers->n[WAY_FAILS])
		peers->lost = peer->path.dgid;
	set_way(peers, peer, WAY_FAILS);
}

bool peers_probe(struct peers *peers, uint32_t id, uint64_t now_ns, struct mad_path *ret,
		 uint32_t *ret_id)
{
	struct peer *peer;

	list_for_each_entry_safe (peer, &peers->probed, probed) {
		if (now_ns < peer->due_ns)
			return false;
		if (peer->n_probes == PROBES) {
			end_round(peers, peer, now_ns);
			continue;
		}
		if (!peer->n_probes)
			peer->probe_id = id;
		*ret = peer->path;
		*ret_id = peer->probe_id + peer->n_probes++;
		peer->due_ns = now_ns + PROBE_NS;
		list_remove(&peer->probed);
		list_append(&peers->probed, &peer->probed);
		return true;
	}
	return false;
}

uint64_t peers_due_ns(const struct peers *peers)
{
	if (list_is_empty(&peers->probed))
		return 0;
	return container_of(peers->probed.next, struct peer, probed)->due_ns;
}

void peers_note_arrival(struct peers *peers, const struct mad_gid *gid)
{
	struct peer *peer = list_is_empty(&peers->probed) ? NULL : find_peer(peers, gid);

	if (peer)
		peer->is_alive = true;
}

/* A late answer proves the fast path, too. */
bool peers_answered(struct peers *peers, const struct mad_gid *gid, uint32_t request_id,
		    uint64_t now_ns)
{
	struct peer *peer = find_peer(peers, gid);

	if (!peer || request_id - peer->probe_id >= peer->n_probes)
		return false;
	peer->n_failed = 0;
	peer->again_ns = 0;
	peer->proven_ns = now_ns;
	set_way(peers, peer, WAY_WORKS);
	return true;
}

static void probe_again(struct peers *peers, struct peer *peer, uint64_t now_ns)
{
	if (peer->way == WAY_WORKS && now_ns - peer->proven_ns >= FRESH_NS)
		begin_round(peers, peer, now_ns);
}

void peers_missed(struct peers *peers, const struct mad_gid *gid, uint64_t now_ns)
{
	struct peer *peer = find_peer(peers, gid);

	if (peer)
		probe_again(peers, peer, now_ns);
}

void peers_unanswered(struct peers *peers, const struct mad_path *path, uint64_t now_ns)
{
	struct peer *peer = find_peer(peers, &path->dgid);

	if (!peer)
		return;
	if (peer->qpn)
		peer->own_avoided_until_ns = now_ns + PROBE_AVOIDED_NS;
	peer->qpn = 0;
	probe_again(peers, peer, now_ns);
}

/* --- the peer's own queue pair ------------------------------------------- */

void peers_note_message(struct peers *peers, const struct mad_gid *gid, uint32_t qpn,
			uint64_t now_ns)
{
	struct peer *peer = qpn > PEER_QP1 ? use_peer(peers, gid) : NULL;

	if (!peer || now_ns < peer->own_avoided_until_ns)
		return;
	peer->qpn = qpn;
	peer->heard_ns = now_ns;
}

void peers_note_request(struct peers *peers, const struct mad_gid *gid, uint32_t qpn)
{
	struct peer *peer = find_peer(peers, gid);

	if (peer && peer->qpn != qpn)
		peer->qpn = 0;
}

uint32_t peers_qpn(const struct peers *peers, const struct mad_gid *gid, uint64_t now_ns)
{
	const struct peer *peer = find_peer(peers, gid);

	return peer ? qpn_of(peer, now_ns) : PEER_BY_UMAD;
}
