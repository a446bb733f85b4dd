/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The rate limit of messages from a host with which there is no connection: each of them makes
 * cmportd send an answer or store a record. The memory is bounded: a host is hashed to a slot, and
 * hosts in the same slot share its rate.
 */
#ifndef LIB_PORTD_SERVER_PEER_RATE_H
#define LIB_PORTD_SERVER_PEER_RATE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/time.h"
#include "mad/port.h"

#define PEER_RATE_SLOTS 4096

struct peer_rate {
	uint64_t secret; /* random: nobody can choose to share another's slot */
	bool was_refused;
	struct peer_rate_slot {
		float spent; /* messages that the time since then has not yet paid for */
		struct cm_time at;
	} slot[PEER_RATE_SLOTS];
};

/**
 * peer_rate_spend() - count a message from a host against its rate
 * @rate: messages a second; a burst may have as many
 *
 * Return: false if the message exceeds the rate. The first time, that is logged.
 */
bool peer_rate_spend(struct peer_rate *rates, const struct mad_gid *peer, uint32_t rate,
		     struct cm_time now);

#endif
