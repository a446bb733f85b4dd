/* SPDX-License-Identifier: BSD-2-Clause */
/* What remote hosts may ask: see strangers.h. */
#include "lib/portd/server/wire/strangers.h"

#include <arpa/inet.h>
#include <string.h>

#include "base/log.h"
#include "cm/fsm.h"
#include "cm/index.h"

static size_t slot_of(const struct strangers *strangers, const struct mad_gid *peer)
{
	const struct cm_key key = { .gid = *peer };

	return cm_key_hash(&key, strangers->each.secret) % HOSTS_KNOWN;
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

static void log_refusal(const struct mad_gid *peer, uint32_t rate)
{
	char text[INET6_ADDRSTRLEN];

	log_warn("%s asks for connections more than %u times a second (quota host-rate): what is "
		 "more is dropped; it is not said again",
		 inet_ntop(AF_INET6, peer->raw, text, sizeof(text)), rate);
}

/* All of these share one rate. */
static bool may_unknown_ask(struct strangers *strangers, uint32_t rate, struct cm_time now)
{
	bucket_refill(&strangers->all_unknown, now, rate, rate);
	if (strangers->all_unknown.tokens >= 1) {
		strangers->all_unknown.tokens--;
		return true;
	}
	if (!strangers->were_refused)
		log_warn(
			"hosts without connections ask more than %u times a second, all together "
			"(%u times quota host-rate): what is more is dropped; it is not said again",
			rate, STRANGERS_TIMES);
	strangers->were_refused = true;
	return false;
}

bool strangers_may_ask(struct strangers *strangers, const struct mad_gid *peer, uint32_t rate,
		       struct cm_time now)
{
	if (peer_rate_take(&strangers->each, peer, rate, rate, now))
		return strangers_are_known(strangers, peer) ||
		       may_unknown_ask(strangers, STRANGERS_TIMES * rate, now);
	if (!strangers->was_refused)
		log_refusal(peer, rate);
	strangers->was_refused = true;
	return false;
}
