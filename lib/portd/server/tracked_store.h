/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * PATH.wills: the memory that the tracked connections lie in, as a file beside the socket, so that
 * they outlive a cmportd that is killed. It is mapped: a tracked connection is written by plain
 * stores. The tracker works without, and calls it by its operations alone.
 *
 * The file is a head, which says what the rest means, and chunks of tracked connections. A process
 * that is killed has done its stores up to some point, in their order, and none after it: whatever
 * takes more than one of them is sealed by the last. What has no seal, or was written by another
 * version, before the host booted or by somebody else counts as nothing.
 *
 * A journal would be a second form of the same data, to be kept in step and truncated. It is a file
 * and not a descriptor in systemd's store, because there is not always a systemd.
 */
#ifndef LIB_PORTD_SERVER_TRACKED_STORE_H
#define LIB_PORTD_SERVER_TRACKED_STORE_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/portd/server/tracked.h"

#define TRACKED_CHUNK	   256 /* tracked connections */
#define TRACKED_CHUNKS_MAX 512 /* of them are kept: 16 MiB of /run */

struct tracked_store;

struct tracked_store_ops {
	void (*close)(struct tracked_store *store);
	struct tracked *(*chunk)(const struct tracked_store *store, uint32_t i);
	struct tracked *(*grow)(struct tracked_store *store);
	void (*trim)(struct tracked_store *store);
	void (*name_port)(struct tracked_store *store, uint8_t handle, const char *device,
			  uint8_t port_num);
	bool (*port)(const struct tracked_store *store, uint8_t handle, const char **ret_device,
		     uint8_t *ret_port_num);
};

struct tracked_store {
	const struct tracked_store_ops *ops;
	uint32_t n_chunks;
	bool is_same_view; /* do process ids in it mean what they mean to us? */
};

/**
 * tracked_store_open() - map the file, and make it one of ours if it is not
 * @fd:  of the file, own_file.h, which nobody else uses meanwhile; owned by the store, also on an
 *       error
 * @ret: to be given back with tracked_store_close()
 *
 * Return: 0 or -errno: it cannot be mapped, or has no room for anything.
 */
int tracked_store_open(int fd, struct tracked_store **ret);

/** tracked_store_close() - the file stays as it is. NULL is allowed. */
static inline void tracked_store_close(struct tracked_store *store)
{
	if (store)
		store->ops->close(store);
}

/** tracked_store_chunk() - one of them; anything may be in those that were there at first. */
static inline struct tracked *tracked_store_chunk(const struct tracked_store *store, uint32_t i)
{
	return store->ops->chunk(store, i);
}

/** tracked_store_grow() - one more, zeroed. Return: NULL if there is no room; the log has said so.
 */
static inline struct tracked *tracked_store_grow(struct tracked_store *store)
{
	return store->ops->grow(store);
}

/** tracked_store_trim() - with no chunk in use, give their memory back. */
static inline void tracked_store_trim(struct tracked_store *store)
{
	store->ops->trim(store);
}

/**
 * tracked_store_name_port() - a handle means a port of a device from now on
 * @device: PORTD_DEVICE_BYTES, ended by '\0'
 */
static inline void tracked_store_name_port(struct tracked_store *store, uint8_t handle,
					   const char *device, uint8_t port_num)
{
	store->ops->name_port(store, handle, device, port_num);
}

/** tracked_store_port() - which port is it? Return: false if the handle means none. */
static inline bool tracked_store_port(const struct tracked_store *store, uint8_t handle,
				      const char **ret_device, uint8_t *ret_port_num)
{
	return store->ops->port(store, handle, ret_device, ret_port_num);
}

#endif
