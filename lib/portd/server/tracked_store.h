/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Storage for tracked connections that survive a restart of cmportd. Optional; the tracker uses it
 * through its operations only.
 */
#ifndef LIB_PORTD_SERVER_TRACKED_STORE_H
#define LIB_PORTD_SERVER_TRACKED_STORE_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/portd/server/tracked.h"

#define TRACKED_CHUNK 256 /* tracked connections */

struct tracked_store;

struct tracked_store_ops {
	/* get one of n_chunks; the content of those present at the start is not trusted */
	struct tracked *(*chunk)(const struct tracked_store *store, uint32_t i);
	/* add a zeroed chunk; NULL if there is no room, which is logged */
	struct tracked *(*grow)(struct tracked_store *store);
	/* release the memory of all chunks; none may be in use */
	void (*trim)(struct tracked_store *store);
	/* set the port that a handle means */
	void (*name_port)(struct tracked_store *store, uint8_t handle,
			  const struct tracked_port *port);
	/* look up the port of a handle. Return: false if the handle means none. */
	bool (*port)(const struct tracked_store *store, uint8_t handle, struct tracked_port *ret);
};

struct tracked_store {
	const struct tracked_store_ops *ops;
	uint32_t n_chunks;
	bool is_same_view; /* process ids in it are of our pid namespace */
};

#endif
