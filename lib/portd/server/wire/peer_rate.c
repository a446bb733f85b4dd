/* SPDX-License-Identifier: BSD-2-Clause */
/* Message rates by host: see peer_rate.h. */
#include "lib/portd/server/wire/peer_rate.h"

#include "cm/index.h"

static struct peer_rate_slot *slot_of(struct peer_rate *rates, const struct mad_gid *peer)
{
	const struct cm_key key = { .gid = *peer };

	return &rates->slot[cm_key_hash(&key, rates->secret) % PEER_RATE_SLOTS];
}

static void let_time_pay(struct peer_rate_slot *slot, uint32_t rate, struct cm_time now)
{
	const double paid = (double)(now.ns - slot->at.ns) * rate / 1e9;

	slot->spent = slot->spent > paid ? (float)(slot->spent - paid) : 0;
	slot->at = now;
}

bool peer_rate_take(struct peer_rate *rates, const struct mad_gid *peer, uint32_t rate,
		    uint32_t burst, struct cm_time now)
{
	struct peer_rate_slot *slot = slot_of(rates, peer);

	let_time_pay(slot, rate, now);
	if (slot->spent + 1 > (float)burst)
		return false;
	slot->spent++;
	return true;
}

void peer_rate_give(struct peer_rate *rates, const struct mad_gid *peer)
{
	struct peer_rate_slot *slot = slot_of(rates, peer);

	slot->spent = slot->spent > 1 ? slot->spent - 1 : 0;
}
