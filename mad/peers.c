/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The queue pairs of peers: see peers.h.
 */
#include "mad/peers.h"

#include <stdbool.h>
#include <string.h>

#define HOLDS_NS   UINT64_C(1000000000)
#define DOUBTED_NS UINT64_C(10000000000)

/* The highest bits of the product, as no others depend on the last bytes of the GID: those by which
 * hosts of a subnet differ. */
static unsigned int slot_of(const struct mad_gid *gid)
{
	uint64_t half[2];

	memcpy(half, gid->raw, sizeof(half));
	return (unsigned int)(((half[0] ^ half[1]) * UINT64_C(0x9e3779b97f4a7c15)) >>
			      (64 - PEERS_LOG2));
}

static bool is_of(const struct peer *peer, const struct mad_gid *gid)
{
	return !memcmp(&peer->gid, gid, sizeof(*gid));
}

uint32_t peers_qpn(const struct peers *peers, const struct mad_gid *gid, uint64_t now_ns)
{
	const struct peer *peer = &peers->slot[slot_of(gid)];

	if (!peer->qpn || !is_of(peer, gid) || now_ns - peer->heard_ns > HOLDS_NS)
		return PEER_QP1;
	return peer->qpn;
}

void peers_heard(struct peers *peers, const struct mad_gid *gid, uint32_t qpn, uint64_t now_ns)
{
	struct peer *peer = &peers->slot[slot_of(gid)];

	if (qpn <= PEER_QP1)
		return;
	if (!is_of(peer, gid))
		*peer = (struct peer){ .gid = *gid };
	if (now_ns < peer->doubted_until_ns)
		return;
	peer->qpn = qpn;
	peer->heard_ns = now_ns;
}

void peers_doubt(struct peers *peers, const struct mad_gid *gid, uint64_t now_ns)
{
	struct peer *peer = &peers->slot[slot_of(gid)];

	if (!peer->qpn || !is_of(peer, gid))
		return;
	peer->doubted_until_ns = now_ns + DOUBTED_NS;
	peer->qpn = 0;
}
