/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The trace ring: the latest messages of a host, in memory that cmportd writes and tracers read.
 * cmportd does not know how far a tracer has read: it overwrites, and a tracer that was too slow
 * sees from the numbers what it has missed.
 *
 * Entries are in the byte order of this machine: both sides are of one PORTD_VERSION.
 */
#ifndef LIB_PORTD_PROTO_TRACE_RING_H
#define LIB_PORTD_PROTO_TRACE_RING_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/portd/proto/proto.h"

#define TRACE_RING_ENTRIES                                                    \
	65536 /* a power of two; 400 bytes each, in memory once they are used \
	       */

struct trace_entry {
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

struct trace_memory;

/* cmportd's side. */
struct trace_ring {
	int fd; /* of the ring, for tracers; owned by the ring */
	struct trace_memory *ring;
};

/**
 * trace_ring_init() - an empty one
 * @trace: to be given back with trace_ring_fini(), also on an error
 *
 * Return: 0 or -errno.
 */
int trace_ring_init(struct trace_ring *trace);

/** trace_ring_fini() - forget it; who has the descriptor can still read what is there. */
void trace_ring_fini(struct trace_ring *trace);

/**
 * trace_ring_next() - where the next message goes, its number filled in; the rest is undefined
 *
 * The oldest is lost with that. To be followed by trace_ring_publish().
 */
struct trace_entry *trace_ring_next(struct trace_ring *trace);

/** trace_ring_publish() - it is written. */
void trace_ring_publish(struct trace_ring *trace);

/* A tracer's side. */
struct trace_reader {
	struct trace_memory *ring; /* of which nothing is written */
	uint64_t number;	   /* of the last message that was taken, or missed */
	uint64_t n_missed;
};

/**
 * trace_reader_init() - begin with the next message
 * @fd:     that came from cmportd; not needed afterwards, and still the caller's
 * @reader: to be given back with trace_reader_fini(); zeroed on an error
 *
 * Return: 0; -EPROTO if that is no trace ring; -errno.
 */
int trace_reader_init(struct trace_reader *reader, int fd);

/** trace_reader_fini() - a reader of zeros is allowed. */
void trace_reader_fini(struct trace_reader *reader);

/** trace_reader_written() - the number of the latest message, 0 before the first. */
uint64_t trace_reader_written(const struct trace_reader *reader);

/**
 * trace_reader_take() - the next message
 *
 * What was overwritten is added to n_missed.
 *
 * Return: false if there is none.
 */
bool trace_reader_take(struct trace_reader *reader, struct trace_entry *ret);

#endif
