/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Exhaustive patterns of faults in the first transmissions of an exchange of two hosts: each is
 * delivered, lost, duplicated, or overtaken by the next.
 */
#ifndef TESTS_SIM_PATTERN_H
#define TESTS_SIM_PATTERN_H

#include "tests/sim/sim.h"

struct pattern_counts {
	uint64_t patterns; /* covered combinations of fates */
	uint64_t runs;	   /* distinct runs: an exchange may need fewer transmissions */
	uint64_t calls, messages;
};

/** pattern_name() - the name of an exchange, or NULL after the last. */
const char *pattern_name(unsigned int number);

/**
 * pattern_run_all() - all combinations for the first @depth transmissions of an exchange
 *
 * Return: 0, or -1 if a rule is broken, after printing the rule and how to repeat the run.
 */
int pattern_run_all(unsigned int number, unsigned int depth, struct pattern_counts *counts);

/**
 * pattern_replay() - one combination, with its chart on @out
 * @fates: a digit for each transmission: 0 delivered, 1 lost, 2 duplicated, 3 overtaken
 *
 * Return: 0; -1 if a rule is broken; -EINVAL if there is no such exchange or digit.
 */
int pattern_replay(const char *name, const char *fates, FILE *out);

#endif
