/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The simulator's command: runs all patterns, or random programs for a while, or repeats one of
 * them and draws its chart. Called by meson test, tools/check and by hand.
 */
#include <argp.h>
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tests/sim/pattern.h"

#define DEPTH 10

struct options {
	bool patterns;
	const char *pattern;
	const char *fates;
	unsigned int depth;
};

static double seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static int all_patterns(const struct options *options)
{
	struct pattern_counts sum = { 0 }, one;
	unsigned int n_failed = 0, i;
	double start = seconds();

	for (i = 0; pattern_name(i); i++) {
		if (options->pattern && strcmp(options->pattern, pattern_name(i)) != 0)
			continue;
		n_failed += pattern_run_all(i, options->depth, &one) != 0;
		printf("%-18s %8" PRIu64 " patterns in %7" PRIu64 " different runs, %9" PRIu64
		       " messages\n",
		       pattern_name(i), one.patterns, one.runs, one.messages);
		fflush(stdout);
		sum.patterns += one.patterns;
		sum.runs += one.runs;
	}
	printf("%" PRIu64 " patterns of %u transmissions, %" PRIu64 " different runs, %.1f s\n",
	       sum.patterns, options->depth, sum.runs, seconds() - start);
	printf("%u passed, %u failed, 0 skipped\n", i - n_failed, n_failed);
	return n_failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

static const struct argp_option option_table[] = {
	{"patterns",						 'p', NULL, 0, "All fates of the first transmissions of small exchanges", 0 },
	{ "pattern",						      'P', "NAME", 0, "Of this exchange only", 0 },
	{ "fates", 'f', "DIGITS", 0,
	  "And only this combination, with its chart: 0 delivered, 1 lost, 2 repeated, 3 overtaken", 0 },
	{ "depth",							 'd', "N", 0, "How many transmissions have fates (10)", 0 },
	{ 0 },
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct options *options = state->input;

	switch (key) {
	case 'p':
		options->patterns = true;
		return 0;
	case 'P':
		options->pattern = arg;
		return 0;
	case 'f':
		options->fates = arg;
		return 0;
	case 'd':
		options->depth = (unsigned int)atoi(arg);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

int main(int argc, char **argv)
{
	static const struct argp argp = {
		option_table, parse, NULL, "Simulated worlds of hosts that connect.", 0, 0, 0
	};
	struct options options = { .depth = DEPTH };

	argp_parse(&argp, argc, argv, 0, NULL, &options);
	if (options.fates)
		return pattern_replay(options.pattern ? options.pattern : "", options.fates, stdout)
			       ? EXIT_FAILURE
			       : EXIT_SUCCESS;
	return all_patterns(&options);
}
