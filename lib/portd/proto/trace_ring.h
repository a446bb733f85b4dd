/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The trace ring: the latest messages of a host, in a file that cmportd writes and tracers read. It
 * survives cmportd, is continued by the next one, and can be read later: the recording.
 *
 * cmportd does not know how far a tracer has read: it overwrites the oldest message, and a tracer
 * that reads too slowly finds gaps in the numbers.
 *
 * Entries are in host byte order: both sides have the same PORTD_VERSION.
 */
#ifndef LIB_PORTD_PROTO_TRACE_RING_H
#define LIB_PORTD_PROTO_TRACE_RING_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/portd/proto/proto.h"

#define RECORDING_SUFFIX      ".recorded" /* after the socket's path */
#define RECORDING_ENTRIES     16384	  /* the default; 400 bytes each, allocated on first use */
#define RECORDING_ENTRIES_MAX 1000000

struct trace_entry {
	uint64_t number;  /* consecutive, from 1 */
	uint64_t time_ns; /* CLOCK_REALTIME */
	uint32_t pid;	  /* of the client; 0: none, or in an invisible pid namespace */
	uint8_t way;	  /* enum portd_way */
	uint8_t port_num;
	char device[PORTD_DEVICE_BYTES];
	struct mad_gid local_gid;
	struct mad_path path; /* to or from the peer */
	uint8_t mad[MAD_BYTES];
};

struct trace_memory;

/* The writer, cmportd. */
struct trace_ring {
	int fd; /* owned by the ring */
	struct trace_memory *ring;
	uint32_t n_entries;
	uint32_t n_reserved; /* entries with allocated memory */
};

/**
 * trace_ring_open() - continue a recording, or start one if the file has none of that size
 * @trace:     to be released with trace_ring_fini(), also on error
 * @fd:        no other process may write to the file; owned by the callee, also on error
 * @n_entries: 1 to RECORDING_ENTRIES_MAX
 *
 * Return: 0 or -errno.
 */
int trace_ring_open(struct trace_ring *trace, int fd, uint32_t n_entries);

/** trace_ring_fini() - release a ring; its file can still be read */
void trace_ring_fini(struct trace_ring *trace);

/**
 * trace_ring_begin() - begin a message that replaces the oldest
 *
 * Return: the entry, for the caller to fill in all but .number; NULL if the file has no room.
 */
struct trace_entry *trace_ring_begin(struct trace_ring *trace);

/** trace_ring_end() - show readers the message that was begun */
void trace_ring_end(struct trace_ring *trace);

/* A reader: a tracer, or a program that reads a recording. */
struct trace_reader {
	struct trace_memory *ring; /* a copy: neither cmportd nor the owner changes what is read */
	int fd;
	uint32_t n_entries;
	uint64_t number; /* of the last message taken or missed */
	uint64_t n_missed;
};

/**
 * trace_reader_open() - read a ring, or a recording, from the oldest message to the latest
 * @fd:     owned by the callee, also on error
 * @reader: to be released with trace_reader_fini(); zeroed on error
 *
 * Return: 0; -ENODATA if the file is empty; -EPROTO if it is no ring of this version; -errno.
 */
int trace_reader_open(struct trace_reader *reader, int fd);

/** trace_reader_skip() - go on with the next message that will be written */
void trace_reader_skip(struct trace_reader *reader);

/**
 * trace_reader_update() - go on with the messages that have been written since
 *
 * All messages copied before must have been taken. Overwritten messages are added to n_missed.
 *
 * Return: 0; -EPROTO if the file was replaced; -errno.
 */
int trace_reader_update(struct trace_reader *reader);

/** trace_reader_fini() - release a reader; a zeroed one is allowed */
void trace_reader_fini(struct trace_reader *reader);

/** trace_reader_written() - the number of the latest message, 0 if there is none; not copied yet */
uint64_t trace_reader_written(const struct trace_reader *reader);

/**
 * trace_reader_take() - take the next message that was copied
 *
 * Return: false if there is none, as in a zeroed reader.
 */
bool trace_reader_take(struct trace_reader *reader, struct trace_entry *ret);

#endif
