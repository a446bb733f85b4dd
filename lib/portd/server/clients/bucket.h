/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A token bucket: a rate, and a burst that may be taken at once. It may be overdrawn. Zeroed it is
 * full.
 */
#ifndef LIB_PORTD_SERVER_CLIENTS_BUCKET_H
#define LIB_PORTD_SERVER_CLIENTS_BUCKET_H

#include <stdbool.h>

#include "base/time.h"

struct bucket {
	double taken; /* tokens taken and not refilled by then */
	struct cm_time at;
};

/** bucket_has() - refill at @rate a second, and return whether one is left of @burst */
static inline bool bucket_has(struct bucket *bucket, double rate, double burst, struct cm_time now)
{
	const double paid = (double)(now.ns - bucket->at.ns) * rate / 1e9;

	bucket->taken = bucket->taken > paid ? bucket->taken - paid : 0;
	bucket->at = now;
	return bucket->taken + 1 <= burst;
}

/** bucket_take() - likewise, and take it */
static inline bool bucket_take(struct bucket *bucket, double rate, double burst, struct cm_time now)
{
	const bool has = bucket_has(bucket, rate, burst, now);

	bucket->taken += has;
	return has;
}

/** bucket_give() - give one back */
static inline void bucket_give(struct bucket *bucket)
{
	bucket->taken = bucket->taken > 1 ? bucket->taken - 1 : 0;
}

#endif
