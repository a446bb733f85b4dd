/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Remote hosts: what each may ask, and what it has not answered. The rate at which a host can make
 * cmportd store records and send responses is limited. cmportd sends a host fewer requests than the
 * host's cmportd accepts, so that no user of this host uses up that rate. A host can forge any
 * number of addresses, so all hosts that have had no connection share a rate, too. Messages of
 * connections do not count.
 *
 * Memory is bounded: hosts of the same hash, which nobody can choose, share an entry.
 */
#ifndef LIB_PORTD_SERVER_WIRE_REMOTE_HOSTS_H
#define LIB_PORTD_SERVER_WIRE_REMOTE_HOSTS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/time.h"
#include "cm/record.h"
#include "lib/portd/server/clients/bucket.h"
#include "lib/portd/server/limits.h"
#include "mad/port.h"

struct host {
	struct mad_gid known; /* the latest of this entry that has had a connection */
	struct bucket asks;
	struct bucket requests; /* sent to it */
	struct bucket unanswered;
};

struct hosts {
	struct host host[HOSTS];
	struct bucket said[HOSTS]; /* by a user's connections, by host and user */
	struct bucket unknown;	   /* what may be asked by those that have had no connection ... */
	struct bucket hops;	   /* ... and next hops that may be resolved for them */
	bool was_refused, were_refused;
};

/** hosts_at() - look up the entry of a remote host */
struct host *hosts_at(struct hosts *hosts, const struct mad_gid *peer);

/** hosts_said() - what a user's connections have said to the host of an entry */
struct bucket *hosts_said(struct hosts *hosts, const struct host *host, uint16_t user);

/** host_know() - note that a host has sent a message of a connection */
static inline void host_know(struct host *host, const struct mad_gid *peer)
{
	host->known = *peer;
}

/** host_is_known() - return whether that is so of a host, and was not long ago */
bool host_is_known(const struct host *host, const struct mad_gid *peer);

/** hosts_know_peer_of() - host_know(), if the host of a stored connection has answered */
void hosts_know_peer_of(struct hosts *hosts, const struct cm_record *is);

/**
 * hosts_may_ask() - count a message that is of no connection
 * @rate: messages of one host a second
 * @burst: at once: @rate for requests, less for what has to leave room for them
 *
 * Return: false if it is too many. The first refusal is logged.
 */
bool hosts_may_ask(struct hosts *hosts, struct host *host, const struct mad_gid *peer,
		   uint32_t rate, uint32_t burst, struct cm_time now);

/**
 * hosts_hops_left() - return whether the kernel may resolve another next hop for an answer
 *
 * The address may be forged. The kernel keeps an entry for each address that does not exist, for a
 * while. Its table has 1,024 entries by default, for all network namespaces together.
 */
bool hosts_hops_left(struct hosts *hosts, struct cm_time now);

/** hosts_use_hops() - count next hops that had to be resolved */
void hosts_use_hops(struct hosts *hosts, unsigned int n);

#endif
