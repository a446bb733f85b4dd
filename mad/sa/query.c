/* SPDX-License-Identifier: BSD-2-Clause */
/* Requests to the subnet administrator: see query.h. */
#include "mad/sa/query.h"

#include <string.h>

void request_encode(const struct sa_msg *request, uint8_t ret[MAD_BYTES])
{
	struct sa_msg untagged = *request;

	untagged.hdr.tid = 0;
	sa_msg_encode(&untagged, ret);
}

uint64_t request_hash(const struct sa_agent *agent, const uint8_t mad[MAD_BYTES])
{
	uint64_t words[MAD_BYTES / sizeof(uint64_t)];
	unsigned int i;

	memcpy(words, mad, sizeof(words));
	for (i = 0; i < MAD_BYTES / sizeof(uint64_t); i++)
		words[i] = (words[i] + agent->secret) * (agent->secret | 1);
	return hash_bytes(words, sizeof(words));
}

void ask_complete(struct sa_agent *agent, struct sa_ask *ask, int err, const struct sa_msg *answer)
{
	cm_timer_disarm(&agent->waits, &ask->timer);
	ask->done(ask, err, answer);
}

unsigned int request_wait_ms(const struct sa_ask *ask)
{
	return ask->timeout_ms > SA_WAIT_MS_MIN ? ask->timeout_ms : SA_WAIT_MS_MIN;
}
