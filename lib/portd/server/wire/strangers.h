/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Limits of what remote hosts ask: requests, messages for nobody, and those that name a client but
 * none of its connections. Each host has a rate, but can forge any number of addresses, so all
 * hosts without a connection so far have one rate together. Messages of connections do not count.
 */
#ifndef LIB_PORTD_SERVER_WIRE_STRANGERS_H
#define LIB_PORTD_SERVER_WIRE_STRANGERS_H

#include <stdbool.h>
#include <stdint.h>

#include "cm/record.h"
#include "lib/portd/server/clients/bucket.h"
#include "lib/portd/server/clients/limits.h"
#include "lib/portd/server/wire/peer_rate.h"
#include "mad/port.h"

struct strangers {
	struct peer_rate
		each; /* its secret is ours, too: no host can choose which one it replaces */
	struct mad_gid known[HOSTS_KNOWN]; /* by hash, one replaces another */
	struct bucket all_unknown;
	struct bucket hops; /* next hops that may be resolved for hosts that are not known */
	bool was_refused, were_refused;
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
 * strangers_may_ask() - count a message that is of no connection
 * @rate: messages of one host a second; a burst may be one second's
 *
 * Return: false if it is too many. The first refusal is logged.
 */
bool strangers_may_ask(struct strangers *strangers, const struct mad_gid *peer, uint32_t rate,
		       struct cm_time now);

#endif
