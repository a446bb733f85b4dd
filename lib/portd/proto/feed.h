/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The feed: a ring of the latest messages in memory that cmportd writes and those who look on
 * read. cmportd knows nothing of how far they are: what they are too slow for is overwritten, and
 * they see by the numbers that it is gone. Written by onlook.c, read by purecm's onlooker.c.
 *
 * Messages stand there as this machine holds them: both sides are of one PORTD_VERSION.
 */
#ifndef LIB_PORTD_PROTO_FEED_H
#define LIB_PORTD_PROTO_FEED_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/portd/proto/proto.h"

#define FEED_MESSAGES 65536 /* a power of two; 400 bytes each, in memory once they are used */

struct feed_message {
	uint64_t number;  /* from 1, one more each time */
	uint64_t time_ns; /* CLOCK_REALTIME */
	uint32_t pid;	  /* of the client that it is of or for; 0: nobody's, or not to be seen */
	uint8_t way;	  /* enum portd_way */
	uint8_t port_num;
	char device[PORTD_DEVICE_BYTES];
	struct mad_gid local_gid;
	struct mad_path path; /* to or from the peer */
	uint8_t mad[MAD_BYTES];
};

struct feed_ring;

/* cmportd's side. */
struct feed {
	int fd; /* of the ring, for those who look on; owned by the feed */
	struct feed_ring *ring;
};

/**
 * feed_init() - an empty one
 * @feed: to be given back with feed_fini(), also on an error
 *
 * Return: 0 or -errno.
 */
int feed_init(struct feed *feed);

/** feed_fini() - forget it; who has the descriptor can still read what is there. */
void feed_fini(struct feed *feed);

/**
 * feed_next() - where the next message goes, its number filled in; the rest is undefined
 *
 * The oldest is lost with that. To be followed by feed_put().
 */
struct feed_message *feed_next(struct feed *feed);

/** feed_put() - it is written. */
void feed_put(struct feed *feed);

/* The side of one who looks on. */
struct feed_reader {
	struct feed_ring *ring; /* of which nothing is written */
	uint64_t number;	/* of the last message that was taken, or missed */
	uint64_t n_missed;
};

/**
 * feed_reader_init() - begin with the next message
 * @fd:     that came from cmportd; not needed afterwards, and still the caller's
 * @reader: to be given back with feed_reader_fini(); zeroed on an error
 *
 * Return: 0; -EPROTO if that is no feed; -errno.
 */
int feed_reader_init(struct feed_reader *reader, int fd);

/** feed_reader_fini() - a reader of zeros is allowed. */
void feed_reader_fini(struct feed_reader *reader);

/** feed_written() - the number of the latest message, 0 before the first. */
uint64_t feed_written(const struct feed_reader *reader);

/**
 * feed_take() - the next message
 *
 * What was overwritten is added to n_missed.
 *
 * Return: false if there is none.
 */
bool feed_take(struct feed_reader *reader, struct feed_message *ret);

#endif
