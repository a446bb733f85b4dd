/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A host: a core, its port and clock, and the applications on it. The effects of the core are
 * carried out here and passed to the oracles. Called by the world, the network and the
 * applications.
 */
#ifndef TESTS_SIM_HOST_H
#define TESTS_SIM_HOST_H

#include "tests/sim/sim.h"

/** host_start() - start a host with a new core; its GUID and GID stay the same. */
void host_start(struct sim_host *host);

/** host_rewind() - reset a host with empty tables for the next run. */
void host_rewind(struct sim_host *host);

/** host_crash() - drop the host's memory without a message or report. */
void host_crash(struct sim_host *host);

/** host_fini() - free it. */
void host_fini(struct sim_host *host);

/** host_receive() - deliver a MAD; @doubtful if it was corrupted or may be forged. */
void host_receive(struct sim_host *host, const struct net_packet *packet, bool doubtful);

/** host_expire() - handle the timers that are due. */
void host_expire(struct sim_host *host);

/** host_due_ns() - when host_expire() is next due, by the world's clock; or never. */
uint64_t host_due_ns(const struct sim_host *host);

/** host_now() - the time of its clock. */
struct cm_time host_now(const struct sim_host *host);

/** host_call() - make a call of an application. Return: as cm_core_call(). */
int host_call(struct sim_id *id, enum cm_event verb, const struct cm_args *args);

/** host_id_new() - create an id. Return: NULL if the core has no spare connection. */
struct sim_id *host_id_new(struct sim_host *host, uint8_t peer);

/** host_find() - the latest id with a comm id, or NULL. */
struct sim_id *host_find(struct sim_host *host, uint32_t comm_id);

#endif
