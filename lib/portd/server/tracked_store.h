/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where tracked connections lie that are to outlive a cmportd. The tracker works without, and knows
 * a store by its operations alone.
 */
#ifndef LIB_PORTD_SERVER_TRACKED_STORE_H
#define LIB_PORTD_SERVER_TRACKED_STORE_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/portd/server/tracked.h"

#define TRACKED_CHUNK 256 /* tracked connections */

struct tracked_store;

struct tracked_store_ops {
	/* one of n_chunks; anything may be in those that were there at first */
	struct tracked *(*chunk)(const struct tracked_store *store, uint32_t i);
	/* one more, zeroed; NULL if there is no room, and the log has said so */
	struct tracked *(*grow)(struct tracked_store *store);
	/* with no chunk in use, give their memory back */
	void (*trim)(struct tracked_store *store);
	/* a handle means a port of a device from now on: PORTD_DEVICE_BYTES, ended by '\0' */
	void (*name_port)(struct tracked_store *store, uint8_t handle, const char *device,
			  uint8_t port_num);
	/* which port is it? Return: false if the handle means none. */
	bool (*port)(const struct tracked_store *store, uint8_t handle, const char **ret_device,
		     uint8_t *ret_port_num);
};

struct tracked_store {
	const struct tracked_store_ops *ops;
	uint32_t n_chunks;
	bool is_same_view; /* do process ids in it mean what they mean to us? */
};

#endif
