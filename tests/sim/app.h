/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Applications: what they do when they are told something, as their traits say, at once, late or
 * never. Called by hosts with reports, and by the world when one has thought long enough.
 */
#ifndef TESTS_SIM_APP_H
#define TESTS_SIM_APP_H

#include "tests/sim/sim.h"

/** app_willing() - one that accepts, confirms and answers everything at once. */
struct app_traits app_willing(void);

/** app_told() - an id gets a report. */
void app_told(struct sim_id *id, const struct cm_report *report);

/** app_call() - an id calls; what a verb needs is made up here. Return: as cm_core_call(). */
int app_call(struct sim_id *id, enum cm_event verb);

/** app_call_later() - it will, after that time. */
void app_call_later(struct sim_id *id, enum cm_event verb, uint64_t after_us);

/** app_due() - that time has come, unless the id is gone meanwhile. */
void app_due(struct sim *sim, const struct plan *plan);

/** app_connect() - a new id on a host asks another for a connection. Return: it, or NULL. */
struct sim_id *app_connect(struct sim_host *host, uint8_t peer);

/** app_look_up() - a new id on a host looks up a service of another. Return: it, or NULL. */
struct sim_id *app_look_up(struct sim_host *host, uint8_t peer);

/** app_destroy_all() - all applications of all hosts are done. */
void app_destroy_all(struct sim *sim);

#endif
