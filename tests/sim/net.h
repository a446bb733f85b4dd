/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The network: one link for each pair of hosts and direction, which loses, duplicates, corrupts and
 * delays messages by kind, may be cut, and has a limited queue. Called by hosts (to send) and by
 * the world (when a packet arrives).
 */
#ifndef TESTS_SIM_NET_H
#define TESTS_SIM_NET_H

#include "tests/sim/sim.h"

/** net_reset() - empty the network, with random streams of a seed, and no faults. */
void net_reset(struct sim *sim);

/** net_fini() - free its memory. */
void net_fini(struct net *net);

/** net_send() - put a MAD of a host on the wire; to an unknown GID it is lost. */
void net_send(struct sim *sim, struct sim_host *from, const struct mad_path *path,
	      const uint8_t mad[MAD_BYTES]);

/** net_arrive() - deliver a packet of the pool. */
void net_arrive(struct sim *sim, uint32_t number);

/** net_held_ns() - when held packets arrive if none overtakes them; or never. */
uint64_t net_held_ns(const struct sim *sim);

/** net_release() - deliver the held packets. */
void net_release(struct sim *sim);

/** net_heal() - deliver everything from now on, with short delays. */
void net_heal(struct sim *sim);

/** net_fates() - set the fates of the next @n transmissions, as enum net_fate; NULL for none. */
void net_fates(struct sim *sim, const uint8_t *fates, unsigned int n);

#endif
