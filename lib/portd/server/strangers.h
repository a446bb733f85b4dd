/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Rate limits for all remote hosts together. peer_rate.h limits each address, but a host can forge
 * any number of addresses. All hosts without a connection so far share one rate. All others share a
 * second one, because their addresses can be forged, too. Messages of connections do not count.
 */
#ifndef LIB_PORTD_SERVER_STRANGERS_H
#define LIB_PORTD_SERVER_STRANGERS_H

#include <stdbool.h>
#include <stdint.h>

#include "cm/record.h"
#include "lib/portd/server/bucket.h"
#include "mad/port.h"

#define STRANGERS_KNOWN	 16384 /* hosts that are remembered; by hash, one replaces another */
#define STRANGERS_HOPS	 50 /* next hops to be resolved at once for those that are not known ... */
#define STRANGERS_HOPS_S 10 /* ... and that many more per second */
#define STRANGERS_TIMES	 2  /* the rate of those that are known is so many times as high */

struct strangers {
	uint64_t secret; /* random, so that no host can choose which one it replaces */
	struct mad_gid known[STRANGERS_KNOWN];
	struct bucket unknown_may, known_may, astray_may;
	struct bucket hops; /* next hops that may be resolved for hosts that are not known */
	bool was_refused;
};

/** strangers_know() - note that a host has sent a message of a connection */
void strangers_know(struct strangers *strangers, const struct mad_gid *peer);

/** strangers_know_peer_of() - likewise, if the host of a stored connection has answered */
void strangers_know_peer_of(struct strangers *strangers, const struct cm_record *is);

/** strangers_are_known() - return whether that is so of a host, and was not long ago */
bool strangers_are_known(const struct strangers *strangers, const struct mad_gid *peer);

/**
 * strangers_hops_left() - return whether the kernel may resolve another next hop for an answer
 *
 * The address may be forged. The kernel keeps an entry for each address that does not exist, for a
 * while. Its table has 1,024 entries by default, for all network namespaces together.
 */
bool strangers_hops_left(struct strangers *strangers, struct cm_time now);

/** strangers_use_hops() - count next hops that had to be resolved */
void strangers_use_hops(struct strangers *strangers, unsigned int n);

/**
 * strangers_may_ask() - count a request, or a message for nobody
 * @rate: messages per second of hosts that are not known; a burst may be one second's
 *
 * Return: false if it is too many. The first refusal is logged.
 */
bool strangers_may_ask(struct strangers *strangers, const struct mad_gid *peer, uint32_t rate,
		       struct cm_time now);

/**
 * strangers_may_stray() - count a message that names a client, but none of its connections
 *
 * Responses to lookups, from hosts that are not known, are among them; so these have a rate of
 * their own, STRANGERS_TIMES as high.
 */
bool strangers_may_stray(struct strangers *strangers, uint32_t rate, struct cm_time now);

#endif
