/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Random programs: a world that follows from a seed, with hosts that connect, disconnect, look up,
 * crash, sleep and come back as somebody else, applications of all characters, and a network that
 * does what it likes until it is healed. Then everything must come to rest, and be right.
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
 * @counts:  what it did is added
 *
 * Return: 0; -1 when a rule is broken: what and how to repeat it has been printed.
 */
int program_run(uint64_t seed, unsigned int n_hosts, FILE *chart, struct program_counts *counts);

#endif
