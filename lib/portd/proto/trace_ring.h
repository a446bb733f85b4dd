/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The trace ring: the latest messages of a host, in memory that cmportd writes and tracers read.
 * cmportd does not know how far a tracer has read: it overwrites, and a tracer that was too slow
 * sees from the numbers what it has missed.
 *
 * The same ring in a file is the recording: it outlives cmportd, the next one continues it, and it
 * is read after the fact.
 *
 * Entries are in the byte order of this machine: both sides are of one PORTD_VERSION.
 */
#ifndef LIB_PORTD_PROTO_TRACE_RING_H
#define LIB_PORTD_PROTO_TRACE_RING_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/portd/proto/proto.h"

#define TRACE_RING_ENTRIES \
	65536 /* of a ring for tracers; 400 bytes each, in memory once they are used */

#define RECORDING_SUFFIX      ".recorded" /* after the socket's path */
#define RECORDING_ENTRIES     16384	  /* unless cmportd is told otherwise */
#define RECORDING_ENTRIES_MAX 1000000

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
	uint32_t n_entries;
	uint32_t n_reserved; /* the first of them, for which there is memory */
};

/**
 * trace_ring_init() - an empty one, in memory, of TRACE_RING_ENTRIES
 * @trace: to be given back with trace_ring_fini(), also on an error
 *
 * Return: 0 or -errno.
 */
int trace_ring_init(struct trace_ring *trace);

/**
 * trace_ring_open() - continue a recording, or begin one if the file has none of that size
 * @trace:     to be given back with trace_ring_fini(), also on an error
 * @fd:        of a file that nobody else writes to; the ring's from now on, also on an error
 * @n_entries: 1 to RECORDING_ENTRIES_MAX
 *
 * Return: 0 or -errno.
 */
int trace_ring_open(struct trace_ring *trace, int fd, uint32_t n_entries);

/** trace_ring_fini() - forget it; who has the descriptor can still read what is there. */
void trace_ring_fini(struct trace_ring *trace);

/**
 * trace_ring_put() - append a message; the oldest is lost with that
 * @entry: its number is not looked at
 *
 * Return: its number; 0 if the file has no room and it was not written.
 */
uint64_t trace_ring_put(struct trace_ring *trace, const struct trace_entry *entry);

/* A tracer's side. */
struct trace_reader {
	struct trace_memory *ring; /* of which nothing is written */
	uint32_t n_entries;
	uint64_t number; /* of the last message that was taken, or missed */
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

/**
 * trace_reader_copy() - begin with the oldest message of a recording, and end with the latest
 * @fd:     of the file; still the caller's, and not needed afterwards
 * @reader: to be given back with trace_reader_fini(); zeroed on an error
 *
 * The file is copied first: neither cmportd nor its owner can change what is read.
 *
 * Return: 0; -ENODATA if it is empty; -EPROTO if it is no recording of this version; -errno.
 */
int trace_reader_copy(struct trace_reader *reader, int fd);

/**
 * trace_reader_update() - what was recorded since; of a reader that trace_reader_copy() has begun
 *
 * All that was copied before was taken. What is lost by now is added to n_missed.
 *
 * Return: 0; -EPROTO if the file has become another; -errno.
 */
int trace_reader_update(struct trace_reader *reader, int fd);

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
