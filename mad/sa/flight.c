/* SPDX-License-Identifier: BSD-2-Clause */
/* Outstanding requests: see flight.h. */
#include "mad/sa/flight.h"

#include <assert.h>
#include <errno.h>

#include "base/hash.h"

#define TRY_BITS	  6 /* of a transaction id: the transmission count */
#define TRIES_MAX	  (1u << TRY_BITS)
#define NUMBER_MASK	  (UINT32_MAX >> TRY_BITS)
#define STATUS_BUSY	  0x0001 /* IBTA vol. 1, 13.4.7: retry later */
#define STATUS_OF_MAD	  0x001f
#define BUSY_NS_MAX	  (SA_BUSY_MS_MAX * CM_NS_PER_MS)

#define STATUS_NO_RECORDS 0x0300 /* 15.2.2 */

void sa_flights_init(struct sa_flights *flights, uint32_t seed,
		     void (*send)(void *arg, const uint8_t mad[MAD_BYTES], unsigned int wait_ms),
		     void *arg)
{
	unsigned int i;

	*flights = (struct sa_flights){
		.number = seed & NUMBER_MASK, .give_way_at = CM_TIME_NEVER, .send = send, .arg = arg
	};
	list_init(&flights->out);
	for (i = 0; i < SA_TURNS; i++)
		list_init(&flights->turn[i].waiting);
}

bool sa_flight_is_on(const struct sa_flight *flight)
{
	return flight->number != 0;
}

static unsigned int left_ms(const struct sa_flight *flight, struct cm_time now)
{
	uint64_t ms;

	if (cm_time_reached(flight->give_up, now))
		return 1;
	ms = (flight->give_up.ns - now.ns) / CM_NS_PER_MS + 1;
	return ms < SA_KERNEL_MS_MAX ? (unsigned int)ms : SA_KERNEL_MS_MAX;
}

static void transmit_question(struct sa_flights *flights, struct sa_flight *flight,
			      struct cm_time now)
{
	struct cm_time again = cm_time_after(now, flight->wait_ns);
	uint8_t mad[MAD_BYTES];

	flight->msg.hdr.tid = flight->number << TRY_BITS | flight->tries++ % TRIES_MAX;
	sa_msg_encode(&flight->msg, mad);
	cm_timer_arm(&flights->timers, &flight->timer, cm_time_earlier(again, flight->give_up));
	flights->n_sent++;
	flights->send(flights->arg, mad, left_ms(flight, now));
}

/* Return: the request to send next, of the turns one after the other; NULL if none may leave. */
static struct sa_flight *choose_waiting(struct sa_flights *flights)
{
	unsigned int i, turn;

	for (i = 0; i < SA_TURNS && flights->n_waiting; i++) {
		turn = flights->next_turn++ % SA_TURNS;
		if (list_is_empty(&flights->turn[turn].waiting) ||
		    (turn && flights->turn[turn].n_out >= SA_TURN_OUT_MAX))
			continue;
		return container_of(flights->turn[turn].waiting.next, struct sa_flight, link);
	}
	return NULL;
}

static void put_waiting(struct sa_flights *flights, struct sa_flight *flight)
{
	list_append(&flights->turn[flight->turn].waiting, &flight->link);
	flights->n_waiting++;
}

static void mark_out(struct sa_flights *flights, struct sa_flight *flight, struct cm_time now)
{
	list_remove(&flight->link);
	list_append(&flights->out, &flight->link);
	flight->is_out = true;
	flight->out_at = now;
	flights->n_waiting--;
	flights->n_out++;
	flights->turn[flight->turn].n_out++;
	transmit_question(flights, flight, now);
}

static void take_out(struct sa_flights *flights, struct sa_flight *flight)
{
	cm_timer_disarm(&flights->timers, &flight->timer);
	list_remove(&flight->link);
	flights->n_out -= flight->is_out;
	flights->turn[flight->turn].n_out -= flight->is_out;
	flights->n_waiting -= !flight->is_out;
	flight->is_out = false;
}

/* --- fairness -------------------------------------------------------------- */

static bool is_waiting(const struct sa_flights *flights, unsigned int turn)
{
	return !list_is_empty(&flights->turn[turn].waiting);
}

/* Return: the fair share: the number of places, by the number of turns with requests. */
static unsigned int fair_share(const struct sa_flights *flights)
{
	unsigned int turn, n = 0;

	for (turn = 0; turn < SA_TURNS; turn++)
		n += flights->turn[turn].n_out || is_waiting(flights, turn);
	return SA_FLIGHTS_OUT_MAX / n;
}

/* Return: the next request, in order of turns, of a turn with less than its share. */
static struct sa_flight *choose_needy(struct sa_flights *flights, unsigned int share)
{
	unsigned int i, turn;

	for (i = 0; i < SA_TURNS; i++) {
		turn = (flights->next_turn + i) % SA_TURNS;
		if (!is_waiting(flights, turn) || flights->turn[turn].n_out >= share)
			continue;
		return container_of(flights->turn[turn].waiting.next, struct sa_flight, link);
	}
	return NULL;
}

/* Return: the oldest request of the turn with the most, if that is more than its share. */
static struct sa_flight *choose_oldest(const struct sa_flights *flights, unsigned int share)
{
	unsigned int turn, most = 0;
	struct sa_flight *flight;

	for (turn = 1; turn < SA_TURNS; turn++)
		if (flights->turn[turn].n_out > flights->turn[most].n_out)
			most = turn;
	if (flights->turn[most].n_out <= share)
		return NULL;
	list_for_each_entry (flight, &flights->out, link)
		if (flight->turn == most)
			return flight;
	return NULL;
}

/* Frees the place of a request, and ends the request if it has no client. */
static void give_way(struct sa_flights *flights, struct sa_flight *flight)
{
	take_out(flights, flight);
	if (flight->rests) {
		flight->number = 0;
		flight->landed(flight, -ETIMEDOUT, NULL);
		return;
	}
	put_waiting(flights, flight);
	cm_timer_arm(&flights->timers, &flight->timer, flight->give_up);
}

/* All places are taken. Return: false if no request gives way to another now. */
static bool preempt_one(struct sa_flights *flights, struct cm_time now)
{
	const unsigned int share = fair_share(flights);
	struct sa_flight *oldest = choose_oldest(flights, share);
	struct sa_flight *needy = oldest ? choose_needy(flights, share) : NULL;
	struct cm_time when;

	if (!needy)
		return false;
	when = cm_time_after(oldest->out_at, SA_GIVE_WAY_MS * CM_NS_PER_MS);
	if (!cm_time_reached(when, now)) {
		flights->give_way_at = when;
		return false;
	}
	flights->next_turn = needy->turn + 1;
	mark_out(flights, needy, now);
	give_way(flights, oldest);
	return true;
}

/* Sends waiting requests up to the limit. A waiting request times out, too. */
static void admit_waiting(struct sa_flights *flights, struct cm_time now)
{
	struct sa_flight *flight;

	while (flights->n_out < SA_FLIGHTS_OUT_MAX && (flight = choose_waiting(flights)))
		mark_out(flights, flight, now);
	flights->give_way_at = CM_TIME_NEVER;
	while (flights->n_out >= SA_FLIGHTS_OUT_MAX && flights->n_waiting &&
	       preempt_one(flights, now))
		continue;
}

void sa_flight_turn(struct sa_flights *flights, struct sa_flight *flight, uint8_t turn,
		    struct cm_time now)
{
	assert(sa_flight_is_on(flight) && turn < SA_TURNS);
	if (flight->is_out || flight->turn == turn)
		return;
	list_remove(&flight->link);
	flights->n_waiting--;
	flight->turn = turn;
	put_waiting(flights, flight);
	admit_waiting(flights, now);
}

static uint64_t interval_ns(const struct sa_flight *flight, unsigned int timeout_ms)
{
	bool is_table = flight->msg.hdr.method == SA_METHOD_GET_TABLE;
	uint64_t try_ms = timeout_ms / (is_table ? SA_TABLE_TRIES : SA_TRIES);

	return (try_ms < SA_TRY_MS_MIN ? SA_TRY_MS_MIN : try_ms) * CM_NS_PER_MS;
}

void sa_flight_start(struct sa_flights *flights, struct sa_flight *flight, unsigned int timeout_ms,
		     struct cm_time now)
{
	assert(!sa_flight_is_on(flight) && flight->landed && flight->turn < SA_TURNS);

	flights->number = (flights->number + 1) & NUMBER_MASK;
	if (flights->number == 0)
		flights->number = 1;
	flight->number = flights->number;
	flight->tries = 0;
	flight->is_out = false;
	flight->rests = false;
	flight->wait_ns = interval_ns(flight, timeout_ms);
	flight->busy_ns = SA_TRY_MS_MIN * CM_NS_PER_MS;
	flight->give_up = cm_time_after(now, timeout_ms * CM_NS_PER_MS);
	put_waiting(flights, flight);
	cm_timer_arm(&flights->timers, &flight->timer, flight->give_up);
	admit_waiting(flights, now);
}

void sa_flight_wait(struct sa_flights *flights, struct sa_flight *flight, unsigned int timeout_ms,
		    struct cm_time now)
{
	const struct cm_time give_up = cm_time_after(now, timeout_ms * CM_NS_PER_MS);
	const uint64_t wait_ns = interval_ns(flight, timeout_ms);
	const bool is_sooner = flight->rests || wait_ns < flight->wait_ns;

	assert(sa_flight_is_on(flight));
	if (flight->give_up.ns < give_up.ns)
		flight->give_up = give_up;
	if (wait_ns < flight->wait_ns)
		flight->wait_ns = wait_ns;
	flight->rests = false;
	if (!flight->is_out)
		cm_timer_arm(&flights->timers, &flight->timer, flight->give_up);
	else if (is_sooner)
		cm_timer_arm(&flights->timers, &flight->timer,
			     cm_time_earlier(cm_time_after(now, flight->wait_ns), flight->give_up));
}

bool sa_flight_rest(struct sa_flights *flights, struct sa_flight *flight, struct cm_time now)
{
	if (!flight->is_out) {
		sa_flight_stop(flights, flight, now);
		return false;
	}
	flight->rests = true;
	cm_timer_arm(&flights->timers, &flight->timer, flight->give_up);
	return true;
}

void sa_flight_stop(struct sa_flights *flights, struct sa_flight *flight, struct cm_time now)
{
	if (!sa_flight_is_on(flight))
		return;
	take_out(flights, flight);
	flight->number = 0;
	admit_waiting(flights, now);
}

static void land_flight(struct sa_flights *flights, struct sa_flight *flight, int err,
			const struct sa_msg *answer, struct cm_time now)
{
	take_out(flights, flight);
	flight->number = 0;
	admit_waiting(flights, now);
	flight->landed(flight, err, answer);
}

static struct sa_flight *find_flight(const struct sa_flights *flights, uint32_t number)
{
	struct sa_flight *flight;

	list_for_each_entry (flight, &flights->out, link)
		if (flight->number == number)
			return flight;
	return NULL;
}

/* IBTA vol. 1, 15.2.2: the response methods. */
static bool is_answer_to(const struct sa_msg *answer, const struct sa_msg *question)
{
	static const uint8_t response[] = {
		[SA_METHOD_GET] = SA_METHOD_RESPONSE | SA_METHOD_GET,
		[SA_METHOD_SET] = SA_METHOD_RESPONSE | SA_METHOD_GET,
		[SA_METHOD_GET_TABLE] = SA_METHOD_RESPONSE | SA_METHOD_GET_TABLE,
		[SA_METHOD_DELETE] = SA_METHOD_RESPONSE | SA_METHOD_DELETE,
	};

	return answer->hdr.attr_id == question->hdr.attr_id &&
	       answer->hdr.method == response[question->hdr.method];
}

/*
 * Three to five quarters of busy_ns, so that hosts that were refused at the same time retry at
 * different times.
 */
static uint64_t jittered_ns(const struct sa_flight *flight)
{
	uint64_t random = hash_bytes(&flight->msg.hdr.tid, sizeof(flight->msg.hdr.tid)) % 1024;

	return flight->busy_ns / 4 * 3 + flight->busy_ns / 2 * random / 1024;
}

static void back_off(struct sa_flights *flights, struct sa_flight *flight, struct cm_time now)
{
	struct cm_time again = cm_time_after(now, jittered_ns(flight));

	cm_timer_arm(&flights->timers, &flight->timer, cm_time_earlier(again, flight->give_up));
	flight->busy_ns = 2 * flight->busy_ns < BUSY_NS_MAX ? 2 * flight->busy_ns : BUSY_NS_MAX;
}

/* Some administrators refuse a table without records. */
static bool is_without_records(const struct sa_msg *answer)
{
	if (answer->hdr.method != (SA_METHOD_RESPONSE | SA_METHOD_GET_TABLE))
		return false;
	return answer->hdr.status ? answer->hdr.status == STATUS_NO_RECORDS
				  : answer->n_records == 0;
}

void sa_flights_input(struct sa_flights *flights, const uint8_t *mad, size_t bytes,
		      struct cm_time now)
{
	struct sa_flight *flight = NULL;
	struct sa_msg msg;

	if (sa_msg_decode(mad, bytes, &msg) == 0)
		flight = find_flight(flights, (uint32_t)msg.hdr.tid >> TRY_BITS);
	if (!flight || !is_answer_to(&msg, &flight->msg))
		return;
	if ((msg.hdr.status & STATUS_OF_MAD) == STATUS_BUSY) {
		if (flight->rests)
			land_flight(flights, flight, -ETIMEDOUT, NULL, now);
		else if ((uint32_t)msg.hdr.tid == (uint32_t)flight->msg.hdr.tid)
			back_off(flights, flight, now);
		return; /* the timer retransmits */
	}
	if (is_without_records(&msg))
		land_flight(flights, flight, -ENOENT, NULL, now);
	else if (msg.hdr.status)
		land_flight(flights, flight, -EINVAL, NULL, now);
	else
		land_flight(flights, flight, 0, &msg, now);
}

void sa_flights_expire(struct sa_flights *flights, struct cm_time now)
{
	struct sa_flight *flight;
	struct cm_timer *timer;
	unsigned int i;

	if (cm_time_reached(flights->give_way_at, now))
		admit_waiting(flights, now);
	for (i = 0; i < SA_EXPIRE_MAX && (timer = cm_timers_pop(&flights->timers, now)); i++) {
		flight = container_of(timer, struct sa_flight, timer);
		if (cm_time_reached(flight->give_up, now))
			land_flight(flights, flight, -ETIMEDOUT, NULL, now);
		else
			transmit_question(flights, flight, now);
	}
}

struct cm_time sa_flights_deadline(const struct sa_flights *flights)
{
	return cm_time_earlier(cm_timers_deadline(&flights->timers), flights->give_way_at);
}

void sa_flights_again(struct sa_flights *flights, struct cm_time now)
{
	struct sa_flight *flight;

	list_for_each_entry (flight, &flights->out, link)
		if (!flight->rests && !cm_time_reached(flight->give_up, now))
			transmit_question(flights, flight, now);
}
