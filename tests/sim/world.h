/* SPDX-License-Identifier: BSD-2-Clause */
/* The world: creates hosts, and advances time from event to event. */
#ifndef TESTS_SIM_WORLD_H
#define TESTS_SIM_WORLD_H

#include "tests/sim/sim.h"

/** world_init() - create hosts with willing applications and a network without faults. */
void world_init(struct sim *sim, uint64_t seed, unsigned int n_hosts);

/** world_rewind() - reset the world for another run; it must be empty. */
void world_rewind(struct sim *sim, uint64_t seed);

/** world_fini() - free it. */
void world_fini(struct sim *sim);

/** world_run() - advance until nothing more happens, @until_ns is reached, or a rule is broken. */
void world_run(struct sim *sim, uint64_t until_ns);

/** world_end() - destroy all ids; nothing may be left. */
void world_end(struct sim *sim);

/** world_identity() - GUID and GID of a host, from its number and incarnation. */
void world_identity(struct sim_host *host, unsigned int life);

#endif
