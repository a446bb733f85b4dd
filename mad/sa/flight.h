/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Questions to the subnet administrator on their way: repeated until they are answered or given up,
 * and not too many at once, because one administrator serves a whole subnet. Pure: time and MADs go
 * in, MADs come out.
 *
 * Each transmission has a transaction id of its own, as umad wants it, and an answer to any of them
 * counts.
 */
#ifndef MAD_SA_FLIGHT_H
#define MAD_SA_FLIGHT_H

#include "base/list.h"
#include "base/timer.h"
#include "mad/sa_msg.h"

#define SA_FLIGHTS_OUT_MAX 64
#define SA_TRIES	   10 /* in the time that the asker grants, as the kernel has it */
#define SA_TRY_MS_MIN	   50

struct sa_flight;

/* An answer, or NULL and why there is none: -ETIMEDOUT, or -EINVAL for an SA that says no. The
 * flight is over and may be used again. */
typedef void sa_landed(struct sa_flight *flight, int err, const struct sa_msg *answer);

/* A question under way; embedded in who asks. */
struct sa_flight {
	struct list link; /* in flights.out or flights.waiting */
	struct cm_timer timer;
	struct cm_time give_up;
	uint64_t wait_ns; /* between transmissions */
	uint32_t number;  /* transaction ids without the count of tries; 0 while not under way */
	uint32_t tries;
	bool is_out;
	struct sa_msg msg;
	sa_landed *landed;
};

struct sa_flights {
	struct list out;
	struct list waiting;
	unsigned int n_out;
	struct cm_timers timers;
	uint32_t number; /* of the last one */
	/* Puts a MAD on the wire; answers that come after @wait_ms are of no use any more. */
	void (*send)(void *arg, const uint8_t mad[MAD_BYTES], unsigned int wait_ms);
	void *arg;
	uint64_t n_sent, n_repeated, n_timeouts, n_refused, n_stray;
};

/** sa_flights_init() - none under way; @seed: where transaction ids begin. */
void sa_flights_init(struct sa_flights *flights, uint32_t seed,
		     void (*send)(void *arg, const uint8_t mad[MAD_BYTES], unsigned int wait_ms),
		     void *arg);

/**
 * sa_flight_start() - ask
 * @flight:     its msg was begun by sa_msg_init(), and landed is set; not under way
 * @timeout_ms: how long to try
 */
void sa_flight_start(struct sa_flights *flights, struct sa_flight *flight, unsigned int timeout_ms,
		     struct cm_time now);

/** sa_flight_stop() - never mind; harmless if it is not under way. landed() is not called. */
void sa_flight_stop(struct sa_flights *flights, struct sa_flight *flight, struct cm_time now);

/** sa_flight_is_on() - is it under way? */
bool sa_flight_is_on(const struct sa_flight *flight);

/** sa_flights_input() - a MAD has arrived; what answers none of the questions is counted. */
void sa_flights_input(struct sa_flights *flights, const uint8_t *mad, size_t bytes,
		      struct cm_time now);

/** sa_flights_expire() - repeat and give up what is due. */
void sa_flights_expire(struct sa_flights *flights, struct cm_time now);

/** sa_flights_again() - all that is out is sent once more: there is another administrator. */
void sa_flights_again(struct sa_flights *flights, struct cm_time now);

#endif
