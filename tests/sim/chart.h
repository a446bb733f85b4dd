/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The sequence chart of a run: one column per host, one line for each message that is sent or
 * arrives late, each call and each report. Draws nothing unless sim.chart is set.
 */
#ifndef TESTS_SIM_CHART_H
#define TESTS_SIM_CHART_H

#include "tests/sim/net.h"

/** chart_send() - draw a sent message with its @fate. */
void chart_send(struct sim *sim, uint8_t from, uint8_t to, const uint8_t mad[MAD_BYTES],
		enum net_fate fate);

/** chart_arrive() - draw the arrival of a late message. */
void chart_arrive(struct sim *sim, const struct net_packet *packet);

/** chart_call() - draw a call of an application. */
void chart_call(struct sim *sim, const struct sim_id *id, enum cm_event verb, int err);

/** chart_report() - draw a report to an application. */
void chart_report(struct sim *sim, const struct sim_host *host, const struct cm_report *report);

/** chart_note() - draw an event of a host. */
void chart_note(struct sim *sim, unsigned int host, const char *text);

#endif
