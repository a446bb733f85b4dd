/* SPDX-License-Identifier: BSD-2-Clause */
/* What all remote hosts together may ask: see strangers.h. */
#include "lib/portd/server/strangers.h"

#include <string.h>

#include "base/log.h"
#include "cm/fsm.h"
#include "cm/index.h"

static size_t slot_of(const struct strangers *strangers, const struct mad_gid *peer)
{
	const struct cm_key key = { .gid = *peer };

	return cm_key_hash(&key, strangers->secret) % STRANGERS_KNOWN;
}

void strangers_know(struct strangers *strangers, const struct mad_gid *peer)
{
	strangers->known[slot_of(strangers, peer)] = *peer;
}

void strangers_know_peer_of(struct strangers *strangers, const struct cm_record *is)
{
	const struct mad_gid peer = mad_path_peer(&is->path);

	if (is->state == CM_ESTABLISHED || is->state == CM_DREQ_SENT)
		strangers_know(strangers, &peer);
}

bool strangers_are_known(const struct strangers *strangers, const struct mad_gid *peer)
{
	return memcmp(&strangers->known[slot_of(strangers, peer)], peer, sizeof(*peer)) == 0;
}

bool strangers_hops_left(struct strangers *strangers, struct cm_time now)
{
	bucket_refill(&strangers->hops, now, STRANGERS_HOPS_S, STRANGERS_HOPS);
	return strangers->hops.tokens >= 1;
}

void strangers_use_hops(struct strangers *strangers, unsigned int n)
{
	strangers->hops.tokens -= n;
}

static bool take(struct bucket *bucket, double rate, struct cm_time now)
{
	bucket_refill(bucket, now, rate, rate);
	if (bucket->tokens < 1)
		return false;
	bucket->tokens--;
	return true;
}

static void log_refusal(struct strangers *strangers, uint32_t rate)
{
	if (!strangers->was_refused)
		log_warn("hosts without connections ask more than %u times a second, all together "
			 "(quota strangers-rate): what is more is dropped; it is not said again",
			 rate);
	strangers->was_refused = true;
}

bool strangers_may_ask(struct strangers *strangers, const struct mad_gid *peer, uint32_t rate,
		       struct cm_time now)
{
	if (strangers_are_known(strangers, peer))
		return take(&strangers->known_may, STRANGERS_TIMES * (double)rate, now);
	if (take(&strangers->unknown_may, rate, now))
		return true;
	log_refusal(strangers, rate);
	return false;
}

bool strangers_may_stray(struct strangers *strangers, uint32_t rate, struct cm_time now)
{
	return take(&strangers->astray_may, STRANGERS_TIMES * (double)rate, now);
}
