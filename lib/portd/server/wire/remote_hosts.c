/* SPDX-License-Identifier: BSD-2-Clause */
/* Remote hosts: see remote_hosts.h. */
#include "lib/portd/server/wire/remote_hosts.h"

#include <arpa/inet.h>
#include <string.h>

#include "base/log.h"
#include "cm/fsm.h"
#include "mad/gid.h"

#define USER_STEP 2654435761u /* odd, so that users of a host have entries of their own */

struct host *hosts_at(struct hosts *hosts, const struct mad_gid *peer)
{
	return &hosts->host[mad_gid_hash(peer, 0, HOSTS_LOG2)];
}

struct bucket *hosts_said(struct hosts *hosts, const struct host *host, uint16_t user)
{
	const uint32_t at = (uint32_t)(host - hosts->host) + user * USER_STEP;

	return &hosts->said[at % HOSTS];
}

bool host_is_known(const struct host *host, const struct mad_gid *peer)
{
	return memcmp(&host->known, peer, sizeof(*peer)) == 0;
}

void hosts_know_peer_of(struct hosts *hosts, const struct cm_record *is)
{
	const struct mad_gid peer = mad_path_peer(&is->path);

	if (is->state == CM_ESTABLISHED || is->state == CM_DREQ_SENT)
		host_know(hosts_at(hosts, &peer), &peer);
}

bool hosts_hops_left(struct hosts *hosts, struct cm_time now)
{
	return bucket_has(&hosts->hops, STRANGERS_HOPS_S, STRANGERS_HOPS, now);
}

void hosts_use_hops(struct hosts *hosts, unsigned int n)
{
	hosts->hops.taken += n;
}

static void log_refusal(const struct mad_gid *peer, uint32_t rate)
{
	char text[INET6_ADDRSTRLEN];

	log_warn("%s asks for connections more than %u times a second (quota host-rate): what is "
		 "more is dropped; it is not said again",
		 inet_ntop(AF_INET6, peer->raw, text, sizeof(text)), rate);
}

static bool may_unknown_ask(struct hosts *hosts, uint32_t rate, uint32_t burst, struct cm_time now)
{
	if (bucket_take(&hosts->unknown, rate, burst, now))
		return true;
	if (!hosts->were_refused)
		log_warn(
			"hosts without connections ask more than %u times a second, all together "
			"(%u times quota host-rate): what is more is dropped; it is not said again",
			rate, STRANGERS_TIMES);
	hosts->were_refused = true;
	return false;
}

bool hosts_may_ask(struct hosts *hosts, struct host *host, const struct mad_gid *peer,
		   uint32_t rate, uint32_t burst, struct cm_time now)
{
	if (bucket_take(&host->asks, rate, burst, now))
		return host_is_known(host, peer) ||
		       may_unknown_ask(hosts, STRANGERS_TIMES * rate, STRANGERS_TIMES * burst, now);
	if (!hosts->was_refused)
		log_refusal(peer, rate);
	hosts->was_refused = true;
	return false;
}
