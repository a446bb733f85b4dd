/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Outstanding requests to the subnet administrator: retransmitted until they are answered or time
 * out, and limited in number, because one administrator serves a whole subnet. Pure: time and MADs
 * go in, MADs come out.
 *
 * Some administrators do not answer some requests. If all places are taken, and a turn waits that
 * has fewer than its fair share of them, the oldest request of the turn with most of them gives
 * way: it is sent again later.
 *
 * Each transmission has its own transaction id, as umad requires; a response to any of them counts.
 */
#ifndef MAD_SA_FLIGHT_H
#define MAD_SA_FLIGHT_H

#include "base/list.h"
#include "base/timer.h"
#include "mad/sa_msg.h"

#define SA_FLIGHTS_OUT_MAX 64
#define SA_TURN_OUT_MAX	   48 /* of one turn other than 0 */
#define SA_TURNS	   64
#define SA_TABLE_TRIES	   2  /* the answer to each is a whole table */
#define SA_TRIES	   10 /* within the client's timeout, as the kernel does */
#define SA_TRY_MS_MIN	   50
#define SA_BUSY_MS_MAX	   2000
#define SA_EXPIRE_MAX	   64	 /* timers that run in a call */
#define SA_GIVE_WAY_MS	   250	 /* for an answer, before it may give way */
#define SA_KERNEL_MS_MAX   60000 /* how long the kernel waits for the answer to a MAD */

struct sa_flight;

/*
 * Called with the response, or NULL and an error: -ETIMEDOUT; -ENOENT for a table without records;
 * -EINVAL if the SA refused. The flight has ended and may be reused.
 */
typedef void sa_landed(struct sa_flight *flight, int err, const struct sa_msg *answer);

/* An outstanding request; embedded by its owner. */
struct sa_flight {
	struct list link; /* in flights.out or flights.waiting[turn] */
	struct cm_timer timer;
	struct cm_time give_up;
	uint64_t wait_ns; /* between transmissions */
	uint64_t busy_ns; /* until a retransmission after BUSY; doubled each time */
	uint32_t
		number; /* transaction id without the transmission count; 0 while not outstanding */
	uint32_t tries;
	struct cm_time out_at; /* when it got its place */
	bool is_out;
	bool rests;   /* nobody waits for it */
	uint8_t turn; /* less than SA_TURNS; flights of one turn leave room for others */
	struct sa_msg msg;
	sa_landed *landed;
};

struct sa_flights {
	struct list out;
	unsigned int n_out;
	struct {
		struct list waiting;
		unsigned int n_out;
	} turn[SA_TURNS];
	unsigned int n_waiting;
	unsigned int next_turn;
	struct cm_time give_way_at; /* when the next request may give way; CM_TIME_NEVER: none waits
				       for a place */
	struct cm_timers timers;
	uint32_t number; /* of the last flight */
	/* Sends a MAD; responses after @wait_ms milliseconds are ignored. */
	void (*send)(void *arg, const uint8_t mad[MAD_BYTES], unsigned int wait_ms);
	void *arg;
	uint64_t n_sent;
};

/** sa_flights_init() - initialise without requests; @seed: start of the transaction ids. */
void sa_flights_init(struct sa_flights *flights, uint32_t seed,
		     void (*send)(void *arg, const uint8_t mad[MAD_BYTES], unsigned int wait_ms),
		     void *arg);

/**
 * sa_flight_start() - send a request
 * @flight:     not outstanding; its msg comes from sa_msg_init(), landed and turn are set
 * @timeout_ms: total timeout in milliseconds
 */
void sa_flight_start(struct sa_flights *flights, struct sa_flight *flight, unsigned int timeout_ms,
		     struct cm_time now);

/** sa_flight_turn() - have a request that has not been sent yet wait in another turn */
void sa_flight_turn(struct sa_flights *flights, struct sa_flight *flight, uint8_t turn,
		    struct cm_time now);

/** sa_flight_wait() - extend the timeout for one more client; also retransmits more often */
void sa_flight_wait(struct sa_flights *flights, struct sa_flight *flight, unsigned int timeout_ms,
		    struct cm_time now);

/**
 * sa_flight_rest() - nobody waits for the response any more
 *
 * The kernel waits for it in any case, and would for any number of requests that were stopped. So
 * it counts as outstanding until it has a response or times out, and landed() is called then. It is
 * not retransmitted until sa_flight_wait() is called.
 *
 * Return: false if it was not sent; it is stopped then.
 */
bool sa_flight_rest(struct sa_flights *flights, struct sa_flight *flight, struct cm_time now);

/** sa_flight_stop() - cancel; no effect if not outstanding. landed() is not called. */
void sa_flight_stop(struct sa_flights *flights, struct sa_flight *flight, struct cm_time now);

/** sa_flight_is_on() - true while outstanding. */
bool sa_flight_is_on(const struct sa_flight *flight);

/** sa_flights_input() - process a received MAD; counts it if it answers no request. */
void sa_flights_input(struct sa_flights *flights, const uint8_t *mad, size_t bytes,
		      struct cm_time now);

/** sa_flights_expire() - retransmit or end the first SA_EXPIRE_MAX requests that are due. */
void sa_flights_expire(struct sa_flights *flights, struct cm_time now);

/** sa_flights_deadline() - when to call sa_flights_expire() next. */
struct cm_time sa_flights_deadline(const struct sa_flights *flights);

/** sa_flights_again() - retransmit all requests, to a new administrator. */
void sa_flights_again(struct sa_flights *flights, struct cm_time now);

#endif
