/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * When to repeat a message that nobody answers, and when to give up: IBTA vol. 1, 12.9.8.
 *
 * The kernel's connection manager waits a flat 6.1 s (REQ) or 4.1 s (REP), 16 times. What a peer
 * can see of our choice is only that a repetition comes sooner, which every peer must bear; it
 * meets one with MRA if it is alive and slow, and with that we wait as long as it asks for.
 */
#ifndef CM_RETRY_H
#define CM_RETRY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/time.h"

#define CM_TRANSMISSIONS_MAX 16

/* How long to wait after the first transmission, twice as long after each, and at most how long;
 * zeros for the default. */
struct cm_waits {
	uint32_t first_ms;
	uint32_t last_ms;
	uint8_t transmissions_max; /* no more than that, also before the time is over; 0: default */
};

struct cm_retry {
	struct cm_time give_up;	   /* CM_TIME_NEVER: when the transmissions are spent, or never */
	struct cm_time first;	   /* transmission */
	uint8_t transmissions;	   /* so far */
	uint8_t transmissions_max; /* 0: only give_up counts */
	bool is_lookup;		   /* which schedule */
	struct cm_waits waits;
	uint64_t mra_wait_ns; /* asked for by the peer's MRA, at least; 0 if it did not */
};

/**
 * cm_retry_init() - begin with a new message
 * @give_up_ns: give up after that long, however many transmissions it takes; 0 for the default,
 *              16 transmissions in 50 s
 * @now:        when it is asked for; a REQ may have to wait for its turn
 */
void cm_retry_init(struct cm_retry *retry, uint64_t give_up_ns, struct cm_time now);

/** cm_retry_set_waits() - depart from the default schedule; before the first transmission. */
void cm_retry_set_waits(struct cm_retry *retry, const struct cm_waits *waits);

/**
 * cm_retry_init_lookup() - the same for a SIDR_REQ: 16 transmissions in 67 s by default
 *
 * There is no MRA here, so the default is no less than the kernel waits, 16 times
 * 4.1 s. And a kernel takes a SIDR_REQ that comes after its answer for another one, so repetitions
 * come later than those of a REQ, when nothing should be on its way any more.
 */
void cm_retry_init_lookup(struct cm_retry *retry, uint64_t give_up_ns, struct cm_time now);

/**
 * cm_retry_next() - count a transmission, tell when it is overdue
 *
 * Return: the deadline for an answer.
 */
struct cm_time cm_retry_next(struct cm_retry *retry, struct cm_time now);

/** cm_retry_overdue() - the deadline for an answer if the wait for it began at @since. */
struct cm_time cm_retry_overdue(const struct cm_retry *retry, struct cm_time since);

/** cm_retry_is_spent() - true if the message must not be sent again. */
bool cm_retry_is_spent(const struct cm_retry *retry, struct cm_time now);

/**
 * cm_retry_wait() - the peer sent an MRA
 * @service_timeout: MRA.service_timeout, encoded; a peer gets no more than 2^24 (69 s)
 * @packet_life_time: of the path, encoded; the passive side has it from the peer, so no more
 *                    than 2^20 (4 s) counts
 *
 * Who asks for less than it would have got anyway does not get less.
 *
 * Return: the deadline for an answer; later transmissions wait as long.
 */
struct cm_time cm_retry_wait(struct cm_retry *retry, uint8_t service_timeout,
			     uint8_t packet_life_time, struct cm_time now);

/** cm_encoded_ms() - a 5-bit encoded time, 4.096 us * 2^t, in milliseconds rounded as 2^(t-8). */
uint64_t cm_encoded_ms(uint8_t t);

/**
 * cm_ack_timeout() - the queue pair's timeout for a path and a device
 * @ca_ack_delay:     encoded, of the device that sends the ACK
 * @packet_life_time: encoded
 *
 * Return: 2 * packet life time + ACK delay, encoded, at most 31.
 */
uint8_t cm_ack_timeout(uint8_t ca_ack_delay, uint8_t packet_life_time);

#endif
