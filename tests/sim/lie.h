/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A host that forges messages: of all kinds, with ids of others, or with values that no honest host
 * sends. It cannot forge its address. It may disturb only its own connections.
 */
#ifndef TESTS_SIM_LIE_H
#define TESTS_SIM_LIE_H

#include "tests/sim/sim.h"

/** falsify_at_random() - one host sends another a forged message, partly true. */
void falsify_at_random(struct sim *sim, struct sim_host *liar, struct sim_host *to);

struct lie_counts {
	uint64_t lies;
	uint64_t fields; /* different ones */
};

/**
 * falsify_every_field() - forge every field of every message, at every moment of two others'
 * exchanges
 * @moments: how many, a quarter of a second apart
 *
 * The events of the two, and their times, must be the same to the nanosecond as without the
 * forgery.
 *
 * Return: 0; -1 if a rule is broken, after printing it.
 */
int falsify_every_field(unsigned int moments, struct lie_counts *counts);

#endif
