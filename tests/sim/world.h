/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The world: it makes hosts, and lets time pass from one thing to the next.
 */
#ifndef TESTS_SIM_WORLD_H
#define TESTS_SIM_WORLD_H

#include "tests/sim/sim.h"

/** world_init() - hosts with willing applications and a network without faults. */
void world_init(struct sim *sim, uint64_t seed, unsigned int n_hosts);

/** world_rewind() - the same world again, for another run; what is left in it must be nothing. */
void world_rewind(struct sim *sim, uint64_t seed);

/** world_fini() - free it. */
void world_fini(struct sim *sim);

/** world_run() - let time pass until nothing more happens, @until_ns has come, or a rule breaks. */
void world_run(struct sim *sim, uint64_t until_ns);

/** world_end() - all ids are destroyed, and afterwards nothing may be left. */
void world_end(struct sim *sim);

/** world_identity() - who a host is: GUID and GID follow from its number and that of its life. */
void world_identity(struct sim_host *host, unsigned int life);

#endif
