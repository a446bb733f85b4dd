/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Rates of messages by host. Of those that come from a host with which there is no connection, as
 * each of them makes cmportd send an answer or store a record; and of requests to a host, which are
 * sent at less than the rate that its cmportd accepts, so that no user of this host spends what
 * there is for all. The memory is bounded: a host is hashed to a slot, and hosts in the same slot
 * share its rate.
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
 * peer_rate_take() - count a message against the rate of its host
 * @rate:  messages a second
 * @burst: so many at once
 *
 * Return: false if the message exceeds the rate; then it does not count.
 */
bool peer_rate_take(struct peer_rate *rates, const struct mad_gid *peer, uint32_t rate,
		    uint32_t burst, struct cm_time now);

/** peer_rate_spend() - take one that has come; a burst may have what a second allows. Return: as
 * peer_rate_take(). The first time that it is false is logged. */
bool peer_rate_spend(struct peer_rate *rates, const struct mad_gid *peer, uint32_t rate,
		     struct cm_time now);

#endif
