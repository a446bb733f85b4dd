/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Storage for tracked connections that survives cmportd: chunks of them, and the names of ports, in
 * the state file (tracked_file.c). Where the file has no room, there is none.
 */
#ifndef LIB_PORTD_SERVER_LEDGER_TRACKED_STORE_H
#define LIB_PORTD_SERVER_LEDGER_TRACKED_STORE_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/portd/server/ledger/tracked.h"

#define TRACKED_CHUNK 256 /* tracked connections */

struct tracked_store {
	uint32_t n_chunks;
	bool is_same_view; /* process ids in it are of our pid namespace */
};

/** tracked_store_chunk() - one of n_chunks; what was there at the start is not trusted */
struct tracked *tracked_store_chunk(const struct tracked_store *store, uint32_t i);

/** tracked_store_grow() - add a zeroed chunk. Return: NULL if there is no room, which is logged. */
struct tracked *tracked_store_grow(struct tracked_store *store);

/** tracked_store_trim() - release the memory of all chunks; none may be in use */
void tracked_store_trim(struct tracked_store *store);

/** tracked_store_name_port() - set the port that a handle means */
void tracked_store_name_port(struct tracked_store *store, uint8_t handle,
			     const struct tracked_port *port);

/** tracked_store_port() - the port of a handle. Return: false if the handle means none. */
bool tracked_store_port(const struct tracked_store *store, uint8_t handle,
			struct tracked_port *ret);

#endif
