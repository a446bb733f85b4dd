/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The sequence chart of a run: a column a host, a line for each message as it is sent, for each
 * that arrives late, for each call and each report. Draws nothing unless sim.chart is set.
 */
#ifndef TESTS_SIM_CHART_H
#define TESTS_SIM_CHART_H

#include "tests/sim/net.h"

/** chart_send() - a message leaves; the @fate tells what becomes of it. */
void chart_send(struct sim *sim, uint8_t from, uint8_t to, const uint8_t mad[MAD_BYTES],
		enum net_fate fate);

/** chart_arrive() - a message that is late arrives. */
void chart_arrive(struct sim *sim, const struct net_packet *packet);

/** chart_call() - an application calls. */
void chart_call(struct sim *sim, const struct sim_id *id, enum cm_event verb, int err);

/** chart_told() - an application is told something. */
void chart_told(struct sim *sim, const struct sim_host *host, const struct cm_report *report);

/** chart_note() - something happens to a host. */
void chart_note(struct sim *sim, unsigned int host, const char *text);

#endif
