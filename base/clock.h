/* SPDX-License-Identifier: BSD-2-Clause */
/* The clock: CLOCK_MONOTONIC, in nanoseconds. Pure code includes time.h instead. */
#ifndef BASE_CLOCK_H
#define BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

#include "base/time.h"

#define CLOCK_NS_PER_S UINT64_C(1000000000)

static inline uint64_t clock_ns_of(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * CLOCK_NS_PER_S + (uint64_t)now.tv_nsec;
}

/** clock_ns() - nanoseconds since a fixed point in time. */
static inline uint64_t clock_ns(void)
{
	return clock_ns_of(CLOCK_MONOTONIC);
}

/** clock_coarse_ns() - as clock_ns(), at a quarter of the cost, accurate to a few milliseconds. */
static inline uint64_t clock_coarse_ns(void)
{
	return clock_ns_of(CLOCK_MONOTONIC_COARSE);
}

/** clock_timespec() - convert nanoseconds to struct timespec. */
static inline struct timespec clock_timespec(uint64_t ns)
{
	return (struct timespec){ (time_t)(ns / CLOCK_NS_PER_S), (long)(ns % CLOCK_NS_PER_S) };
}

/** clock_after_ms() - the time @ms from now, for pthread_cond_clockwait(). */
static inline struct timespec clock_after_ms(unsigned int ms)
{
	return clock_timespec(clock_ns() + ms * CM_NS_PER_MS);
}

/** clock_span_s() - the seconds from @from_ns to @to_ns; negative if @to_ns is earlier. */
static inline double clock_span_s(uint64_t from_ns, uint64_t to_ns)
{
	return (double)(int64_t)(to_ns - from_ns) / CLOCK_NS_PER_S;
}

/** clock_span_ms() - as clock_span_s(), in milliseconds. */
static inline double clock_span_ms(uint64_t from_ns, uint64_t to_ns)
{
	return clock_span_s(from_ns, to_ns) * 1000;
}

/** clock_now() - clock_ns() as struct cm_time. */
static inline struct cm_time clock_now(void)
{
	return (struct cm_time){ clock_ns() };
}

#endif
