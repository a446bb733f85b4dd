/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A host: a core, its port and clock, and the applications on it. Here what the core says is
 * carried out and shown to the oracles. Called by the world, the network and the applications.
 */
#ifndef TESTS_SIM_HOST_H
#define TESTS_SIM_HOST_H

#include "tests/sim/sim.h"

/** host_start() - a host comes up with a new core; its GUID and GID stay as they are. */
void host_start(struct sim_host *host);

/** host_rewind() - a host whose tables are empty is as good as new for the next run. */
void host_rewind(struct sim_host *host);

/** host_crash() - its memory is gone, and nobody is told. */
void host_crash(struct sim_host *host);

/** host_fini() - free it. */
void host_fini(struct sim_host *host);

/** host_hear() - a MAD arrives; @doubtful if it was broken on the way or may be a lie. */
void host_hear(struct sim_host *host, const struct net_packet *packet, bool doubtful);

/** host_expire() - deal with the timers that are due. */
void host_expire(struct sim_host *host);

/** host_due_ns() - when host_expire() is next needed, by the world's clock; or never. */
uint64_t host_due_ns(const struct sim_host *host);

/** host_now() - what its clock says. */
struct cm_time host_now(const struct sim_host *host);

/** host_call() - an application on it calls. Return: as cm_core_call(). */
int host_call(struct sim_id *id, enum cm_event verb, const struct cm_args *args);

/** host_id_new() - an id without a past. Return: NULL if the core has no connection to spare. */
struct sim_id *host_id_new(struct sim_host *host, uint8_t peer);

/** host_find() - the latest id with a comm id, or NULL. */
struct sim_id *host_find(struct sim_host *host, uint32_t comm_id);

#endif
