/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The simulator's command: runs all patterns, or random programs for a while, or repeats one of
 * them and draws its chart. Run by meson test, tools/check and by hand.
 */
#include <argp.h>
#include <errno.h>
#include <inttypes.h>
#include <malloc.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tests/sim/lie.h"
#include "tests/sim/pattern.h"
#include "tests/sim/program.h"

#define DEPTH	   10
#define HEAP_SLACK 1000000
#define MOMENTS	   40

enum what {
	WHAT_PATTERNS,
	WHAT_PROGRAMS,
	WHAT_LIES,
};

struct options {
	enum what what;
	double seconds;
	uint64_t programs;
	uint64_t first; /* first seed */
	bool one;	/* run one seed, with its chart */
	const char *pattern;
	const char *fates;
	unsigned int depth;
	unsigned int moments;
	unsigned int n_hosts; /* 0: determined by the seed */
};

static volatile uint64_t current_seed;
static volatile unsigned int current_hosts; /* 0: as the seed has it */

/* Also prints how to reproduce a failed assertion of the core. */
static void on_abort(int signal_)
{
	char text[96];
	int n = current_hosts
			? snprintf(text, sizeof(text), "again: sim --seed %" PRIu64 " --hosts %u\n",
				   current_seed, current_hosts)
			: snprintf(text, sizeof(text), "again: sim --seed %" PRIu64 "\n",
				   current_seed);

	if (current_seed && write(STDOUT_FILENO, text, n) < 0)
		_exit(EXIT_FAILURE);
	signal(signal_, SIG_DFL);
	raise(signal_);
}

static double seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static int play_all_patterns(const struct options *options)
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

static int play_pattern(const struct options *options)
{
	int ret = pattern_replay(options->pattern ? options->pattern : "", options->fates, stdout);

	if (ret == -EINVAL)
		fprintf(stderr, "sim: no such exchange, or no such fate\n");
	return ret ? EXIT_FAILURE : EXIT_SUCCESS;
}

static size_t heap_bytes(void)
{
	struct mallinfo2 info = mallinfo2();

	return info.uordblks + info.hblkhd;
}

/*
 * Runs consecutive seeds until the time or the number is reached. A world must release all its
 * memory.
 */
static int play_random_programs(const struct options *options)
{
	struct program_counts counts = { 0 };
	double start = seconds();
	uint64_t seed = options->first;
	size_t before = heap_bytes(), after;
	int ret = 0;

	while (!ret && (options->programs ? counts.programs < options->programs
					  : seconds() - start < options->seconds)) {
		current_seed = seed;
		ret = program_run(seed++, options->n_hosts, NULL, &counts);
	}
	after = heap_bytes();
	/* The allocator keeps some freed memory. */
	if (after > before + HEAP_SLACK) {
		printf("FAIL %zu bytes of memory were not given back\n", after - before);
		ret = -1;
	}
	printf("%" PRIu64 " programs from seed %" PRIu64 ": %" PRIu64 " ids, %" PRIu64
	       " calls, %" PRIu64 " messages, %s, %.1f s\n",
	       counts.programs, options->first, counts.ids, counts.calls, counts.messages,
	       ret ? "and one finding" : "no finding", seconds() - start);
	printf("%d passed, %d failed, 0 skipped\n", !ret, !!ret);
	return ret ? EXIT_FAILURE : EXIT_SUCCESS;
}

static int play_program(const struct options *options)
{
	struct program_counts counts = { 0 };

	current_seed = options->first;
	return program_run(options->first, options->n_hosts, stdout, &counts) ? EXIT_FAILURE
									      : EXIT_SUCCESS;
}

static int play_all_falsifications(const struct options *options)
{
	struct lie_counts counts;
	double start = seconds();
	int ret = falsify_every_field(options->moments, &counts);

	printf("%" PRIu64 " lies about %" PRIu64 " fields, %s, %.1f s\n", counts.lies,
	       counts.fields, ret ? "and one that hurts others" : "none hurts others",
	       seconds() - start);
	printf("%d passed, %d failed, 0 skipped\n", !ret, !!ret);
	return ret ? EXIT_FAILURE : EXIT_SUCCESS;
}

/* clang-format off */
static const struct argp_option option_table[] = {
	{ "patterns", 'p', NULL, 0, "All fates of the first transmissions of small exchanges", 0 },
	{ "pattern", 'P', "NAME", 0, "Of this exchange only", 0 },
	{ "fates", 'f', "DIGITS", 0, "And only this combination, with its chart: "
	  "0 delivered, 1 lost, 2 repeated, 3 overtaken", 0 },
	{ "depth", 'd', "N", 0, "How many transmissions have fates (10)", 0 },
	{ "random", 'r', "SECONDS", 0, "Random programs for that long", 0 },
	{ "count", 'n', "N", 0, "That many random programs", 0 },
	{ "from", 'F', "SEED", 0, "The first of them (1)", 0 },
	{ "seed", 's', "SEED", 0, "This random program only, with its chart", 0 },
	{ "hosts", 'H', "N", 0, "Of so many hosts, 2 to 64 (2 to 6, by the seed)", 0 },
	{ "lies", 'l', NULL, 0, "A lie in every field of every message", 0 },
	{ "moments", 'm', "N", 0, "At so many moments, a quarter of a second apart (40)", 0 },
	{ 0 },
};
/* clang-format on */

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct options *options = state->input;

	switch (key) {
	case 'p':
		options->what = WHAT_PATTERNS;
		return 0;
	case 'r':
		options->what = WHAT_PROGRAMS;
		options->seconds = atof(arg);
		return 0;
	case 'n':
		options->what = WHAT_PROGRAMS;
		options->programs = strtoull(arg, NULL, 10);
		return 0;
	case 's':
		options->one = true;
		options->first = strtoull(arg, NULL, 10);
		return 0;
	case 'F':
		options->first = strtoull(arg, NULL, 10);
		return 0;
	case 'm':
		options->moments = (unsigned int)atoi(arg);
		return 0;
	case 'l':
		options->what = WHAT_LIES;
		return 0;
	case 'P':
		options->pattern = arg;
		return 0;
	case 'f':
		options->fates = arg;
		return 0;
	case 'H':
		options->n_hosts = (unsigned int)atoi(arg);
		if (options->n_hosts < 2 || options->n_hosts > SIM_HOSTS_MAX)
			argp_error(state, "2 to %d hosts", SIM_HOSTS_MAX);
		current_hosts = options->n_hosts;
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
	struct options options = { .depth = DEPTH, .moments = MOMENTS, .first = 1 };

	argp_parse(&argp, argc, argv, 0, NULL, &options);
	signal(SIGABRT, on_abort);
	if (options.fates)
		return play_pattern(&options);
	if (options.one)
		return play_program(&options);
	switch (options.what) {
	case WHAT_PATTERNS:
		return play_all_patterns(&options);
	case WHAT_PROGRAMS:
		return play_random_programs(&options);
	case WHAT_LIES:
		return play_all_falsifications(&options);
	}
	return EXIT_FAILURE;
}
