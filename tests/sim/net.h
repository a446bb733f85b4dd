/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The network: one link for each pair of hosts and direction, which loses, repeats, breaks and
 * delays messages by kind, is cut, and holds so many and no more. Called by hosts (to send) and by
 * the world (when a packet arrives).
 */
#ifndef TESTS_SIM_NET_H
#define TESTS_SIM_NET_H

#include "tests/sim/sim.h"

/** net_reset() - an empty network that delivers everything, with the streams of a seed. */
void net_reset(struct sim *sim);

/** net_fini() - free its memory. */
void net_fini(struct net *net);

/** net_send() - a host puts a MAD on the wire; whose GID nobody has gets lost. */
void net_send(struct sim *sim, struct sim_host *from, const struct mad_path *path,
	      const uint8_t mad[MAD_BYTES]);

/** net_arrive() - a packet of the pool is due. */
void net_arrive(struct sim *sim, uint32_t number);

/** net_held_ns() - when packets arrive that wait for another to pass and see none; or never. */
uint64_t net_held_ns(const struct sim *sim);

/** net_release() - those packets are due. */
void net_release(struct sim *sim);

/** net_heal() - from now on everything is delivered, soon. */
void net_heal(struct sim *sim);

/** net_fates() - what happens to the next @n transmissions, as enum net_fate; NULL for none. */
void net_fates(struct sim *sim, const uint8_t *fates, unsigned int n);

#endif
