/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A token bucket: a budget that is refilled at a rate. It may be overdrawn.
 */
#ifndef LIB_PORTD_SERVER_CLIENTS_BUCKET_H
#define LIB_PORTD_SERVER_CLIENTS_BUCKET_H

#include "base/time.h"

struct bucket {
	double tokens;
	struct cm_time at;
};

/** bucket_refill() - add @rate tokens per second since the last refill, up to @full */
static inline void bucket_refill(struct bucket *bucket, struct cm_time now, double rate,
				 double full)
{
	const double earned = (double)(now.ns - bucket->at.ns) * rate / 1e9;

	bucket->tokens = bucket->tokens + earned < full ? bucket->tokens + earned : full;
	bucket->at = now;
}

#endif
