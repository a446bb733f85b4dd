/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Message rates by remote host. Messages from a host without a connection are limited because each
 * makes cmportd send a response or store a record. Requests to a host are limited to less than the
 * rate that the host's cmportd accepts, so that no single user of this host uses up the whole rate.
 * Memory is bounded: a host is hashed to a slot, and hosts in the same slot share its rate.
 */
#ifndef LIB_PORTD_SERVER_WIRE_PEER_RATE_H
#define LIB_PORTD_SERVER_WIRE_PEER_RATE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/time.h"
#include "mad/port.h"

#define PEER_RATE_SLOTS 4096

struct peer_rate {
	uint64_t secret; /* random, so that no host can choose to share another's slot */
	struct peer_rate_slot {
		float spent; /* messages not yet covered by the elapsed time */
		struct cm_time at;
	} slot[PEER_RATE_SLOTS];
};

/**
 * peer_rate_take() - count a message against the rate of its host
 * @rate:  messages per second
 * @burst: messages allowed at once
 *
 * Return: false if the message exceeds the rate; then it is not counted.
 */
bool peer_rate_take(struct peer_rate *rates, const struct mad_gid *peer, uint32_t rate,
		    uint32_t burst, struct cm_time now);

/** peer_rate_give() - revert peer_rate_take() for one message */
void peer_rate_give(struct peer_rate *rates, const struct mad_gid *peer);

#endif
