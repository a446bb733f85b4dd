/* SPDX-License-Identifier: BSD-2-Clause */
/* What agent.c and joined_group.c share: how a request is identified and ended. */
#ifndef MAD_SA_QUERY_H
#define MAD_SA_QUERY_H

#include "mad/sa/agent.h"

/** request_encode() - encode a request without its transaction id: equal ones are equal then */
void request_encode(const struct sa_msg *request, uint8_t ret[MAD_BYTES]);

/** request_hash() - hash what request_encode() has made; clients cannot predict it */
uint64_t request_hash(const struct sa_agent *agent, const uint8_t mad[MAD_BYTES]);

/** ask_complete() - call done(): the request does not time out any more */
void ask_complete(struct sa_agent *agent, struct sa_ask *ask, int err, const struct sa_msg *answer);

/**
 * request_wait_ms() - how long to wait for the response to a request
 *
 * Longer than the client's own timeout: a client with a timeout of a millisecond could otherwise
 * send its next request before the administrator can have answered.
 */
unsigned int request_wait_ms(const struct sa_ask *ask);

#endif
