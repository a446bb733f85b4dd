/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * When to retransmit an unanswered message, and when to give up: IBTA vol. 1, 12.9.8.
 *
 * The kernel's connection manager waits a fixed 6.1 s (REQ) or 4.1 s (REP), 16 times. A peer only
 * notices that our retransmissions come sooner, which every peer must tolerate; a slow peer answers
 * with MRA, and then we wait as long as it asks for.
 */
#ifndef CM_RETRY_H
#define CM_RETRY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/time.h"

#define CM_TRANSMISSIONS_MAX 16

/* Retransmission intervals: first_ms, doubled each time, up to last_ms; zeros for the default. */
struct cm_waits {
	uint32_t first_ms;
	uint32_t last_ms;
	uint8_t transmissions_max; /* total; 0: default; ends also before give_up */
};

struct cm_retry {
	struct cm_time give_up;	   /* CM_TIME_NEVER: limited by transmissions_max only */
	struct cm_time first;	   /* time of the first transmission */
	uint8_t transmissions;	   /* so far */
	uint8_t transmissions_max; /* 0: limited by give_up only */
	bool is_lookup;		   /* use the schedule of SIDR_REQ */
	struct cm_waits waits;
	uint64_t mra_wait_ns; /* minimum interval that the peer's MRA asked for; 0: no MRA */
};

/**
 * cm_retry_init() - initialise for a new message
 * @give_up_ns: total timeout, however many transmissions it takes; 0: default, 16 transmissions in
 *              50 s
 * @now:        time of the call; a REQ may still have to wait for a send slot
 */
void cm_retry_init(struct cm_retry *retry, uint64_t give_up_ns, struct cm_time now);

/** cm_retry_set_waits() - override the default schedule; before the first transmission only. */
void cm_retry_set_waits(struct cm_retry *retry, const struct cm_waits *waits);

/**
 * cm_retry_init_lookup() - as cm_retry_init(), for a SIDR_REQ: by default 16 transmissions in 67 s
 *
 * SIDR has no MRA, so the default timeout is no shorter than the kernel's, 16 times 4.1 s. A kernel
 * takes a SIDR_REQ that arrives after its answer for a new one, so the intervals are longer than
 * those of a REQ, long enough for an answer that is still on its way.
 */
void cm_retry_init_lookup(struct cm_retry *retry, uint64_t give_up_ns, struct cm_time now);

/**
 * cm_retry_next() - count a transmission
 *
 * Return: the deadline for its answer.
 */
struct cm_time cm_retry_next(struct cm_retry *retry, struct cm_time now);

/** cm_retry_overdue() - deadline for an answer if the wait began at @since. */
struct cm_time cm_retry_overdue(const struct cm_retry *retry, struct cm_time since);

/** cm_retry_is_spent() - true if the message must not be retransmitted. */
bool cm_retry_is_spent(const struct cm_retry *retry, struct cm_time now);

/**
 * cm_retry_wait() - account for an MRA of the peer
 * @service_timeout:  MRA.service_timeout, encoded; capped at 2^24 (69 s)
 * @packet_life_time: of the path, encoded; capped at 2^20 (4 s), since on the passive side the peer
 *                    chooses it
 *
 * An MRA never shortens the default interval.
 *
 * Return: the deadline for an answer; later intervals are as long.
 */
struct cm_time cm_retry_wait(struct cm_retry *retry, uint8_t service_timeout,
			     uint8_t packet_life_time, struct cm_time now);

/** cm_encoded_ms() - convert an encoded time, 4.096 us * 2^t, to ms, rounded as 2^(t-8). */
uint64_t cm_encoded_ms(uint8_t t);

/** cm_round_trip() - cm_ack_timeout() while the ACK delay is unknown: 2 * packet life time. */
uint8_t cm_round_trip(uint8_t packet_life_time);

/**
 * cm_ack_timeout() - the queue pair's timeout for a path and a device
 * @ca_ack_delay:     of the device that sends the ACK, encoded
 * @packet_life_time: of the path, encoded
 *
 * Return: 2 * packet life time + ACK delay, encoded, at most 31.
 */
uint8_t cm_ack_timeout(uint8_t ca_ack_delay, uint8_t packet_life_time);

#endif
