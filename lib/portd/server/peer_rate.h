/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How fast a host of the network may ask for what costs us an answer, or a record, before anything
 * is known of it. Bounded, however many hosts there are, or pretend to be: those of a slot share a
 * rate.
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
 * peer_rate_spend() - a host asks for something
 * @rate: messages a second; a second's may come at once
 *
 * Return: false if it has asked for more than that. The log says so of the first.
 */
bool peer_rate_spend(struct peer_rate *rates, const struct mad_gid *peer, uint32_t rate,
		     struct cm_time now);

#endif
