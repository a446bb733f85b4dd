/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A host that lies: it sends messages of all kinds that name what is not its own, or say what no
 * honest host says. All it cannot forge is its address. It may hurt its own connections only.
 */
#ifndef TESTS_SIM_LIE_H
#define TESTS_SIM_LIE_H

#include "tests/sim/sim.h"

/** lie_at_random() - one host sends another a forged message, some of it true. */
void lie_at_random(struct sim *sim, struct sim_host *liar, struct sim_host *to);

struct lie_counts {
	uint64_t lies;
	uint64_t fields; /* different ones */
};

/**
 * lie_in_every_field() - every field of every message, at every moment of two others' exchanges
 * @moments: how many, a quarter of a second apart
 *
 * What the two experience, and when, must be the same to the nanosecond as without the lie.
 *
 * Return: 0; -1 when a rule is broken: which has been printed.
 */
int lie_in_every_field(unsigned int moments, struct lie_counts *counts);

#endif
