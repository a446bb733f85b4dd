/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Random programs: a world that follows from a seed, with hosts that connect, disconnect, look up,
 * crash, sleep and restart with another identity, applications with all traits, and a network with
 * random faults until it is healed. Then all activity must end, in a correct state.
 */
#ifndef TESTS_SIM_PROGRAM_H
#define TESTS_SIM_PROGRAM_H

#include "tests/sim/sim.h"

struct program_counts {
	uint64_t programs;
	uint64_t calls, messages;
	uint64_t ids;
};

/**
 * program_run() - one program
 * @n_hosts: 2 to SIM_HOSTS_MAX; 0 for two to six, by the seed
 * @chart:   where to draw it, or NULL
 * @counts:  its counts are added
 *
 * Return: 0; -1 if a rule is broken, after printing the rule and how to repeat the run.
 */
int program_run(uint64_t seed, unsigned int n_hosts, FILE *chart, struct program_counts *counts);

#endif
