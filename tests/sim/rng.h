/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Pseudo-random numbers from a seed: the only source of randomness in the simulator. Each link and
 * each application has a stream of its own, so that one that draws more does not change what
 * another draws.
 */
#ifndef TESTS_SIM_RNG_H
#define TESTS_SIM_RNG_H

#include <stdbool.h>
#include <stdint.h>

struct rng {
	uint64_t state;
};

/** rng_next() - 64 bits (splitmix64). */
static inline uint64_t rng_next(struct rng *rng)
{
	uint64_t x = rng->state += UINT64_C(0x9e3779b97f4a7c15);

	x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
	return x ^ x >> 31;
}

/** rng_fork() - the stream of one part of a world: same seed and part, same numbers. */
static inline struct rng rng_fork(uint64_t seed, uint64_t part)
{
	struct rng rng = { seed ^ (part + 1) * UINT64_C(0xd1342543de82ef95) };

	rng.state = rng_next(&rng);
	return rng;
}

/** rng_below() - a number from 0 to @n - 1; @n is not 0. */
static inline uint64_t rng_below(struct rng *rng, uint64_t n)
{
	return rng_next(rng) % n;
}

/** rng_chance() - true in @permille of 1000 cases; draws nothing for never and for always. */
static inline bool rng_chance(struct rng *rng, unsigned int permille)
{
	if (permille == 0 || permille >= 1000)
		return permille;
	return rng_below(rng, 1000) < permille;
}

/** rng_tail() - a number from 0 to @max, mostly small: each doubling is half as likely. */
static inline uint64_t rng_tail(struct rng *rng, uint64_t max)
{
	uint64_t bits = rng_next(rng);
	unsigned int halvings = bits ? (unsigned int)__builtin_ctzll(bits) : 63;

	/* One in 2^12 gets the whole range, the rest less by powers of two. */
	halvings = halvings < 12 ? 12 - halvings : 0;
	return max ? rng_below(rng, (max >> halvings) + 1) : 0;
}

#endif
