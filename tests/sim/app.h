/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Applications: their reactions to reports, as their traits define, at once, late or never. Hosts
 * deliver reports; the world calls when the time for a reaction has come.
 */
#ifndef TESTS_SIM_APP_H
#define TESTS_SIM_APP_H

#include "tests/sim/sim.h"

/** app_accepts() - traits that accept, confirm and answer everything at once. */
struct app_traits app_accepts(void);

/** app_report() - deliver a report to an id. */
void app_report(struct sim_id *id, const struct cm_report *report);

/** app_call() - make a call on an id, with generated arguments. Return: as cm_core_call(). */
int app_call(struct sim_id *id, enum cm_event verb);

/** app_call_later() - plan a call after a time. */
void app_call_later(struct sim_id *id, enum cm_event verb, uint64_t after_us);

/** app_due() - make a planned call, unless the id is gone. */
void app_due(struct sim *sim, const struct plan *plan);

/** app_connect() - request a connection to another host for a new id. Return: the id, or NULL. */
struct sim_id *app_connect(struct sim_host *host, uint8_t peer);

/** app_look_up() - look up a service of another host for a new id. Return: the id, or NULL. */
struct sim_id *app_look_up(struct sim_host *host, uint8_t peer);

/** app_destroy_all() - destroy the ids of all applications of all hosts. */
void app_destroy_all(struct sim *sim);

#endif
