/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * PATH.wills: the memory that the wills lie in, as a file beside the socket, so that they outlive
 * a cmportd that is killed. It is mapped: a will is written by plain stores. Called by
 * will_table.c and will_heir.c, and to open it by estate.c.
 *
 * The file is a head, which says what the rest means, and chunks of wills. A process that is
 * killed has done its stores up to some point, in their order, and none after it: whatever takes
 * more than one of them is sealed by the last. What has no seal, or was written by another
 * version, before the host booted or by somebody else counts as nothing.
 */
#ifndef LIB_PORTD_SERVER_WILL_STORE_H
#define LIB_PORTD_SERVER_WILL_STORE_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/portd/server/will.h"

#define WILL_CHUNK	256 /* wills */
#define WILL_CHUNKS_MAX 512 /* of them are kept: 16 MiB of /run */

struct will_store;

/**
 * will_store_open() - map the file, and make it one of ours if it is not
 * @fd:  of the file, own_file.h, which nobody else uses meanwhile; owned by the store, also on an
 *       error
 * @ret: to be given back with will_store_close()
 *
 * Return: 0 or -errno: it cannot be mapped, or has no room for anything.
 */
int will_store_open(int fd, struct will_store **ret);

/** will_store_close() - the file stays as it is. NULL is allowed. */
void will_store_close(struct will_store *store);

/** will_store_is_same_view() - do process ids in it mean what they mean to us? */
bool will_store_is_same_view(const struct will_store *store);

/** will_store_chunks() - how many there are. */
uint32_t will_store_chunks(const struct will_store *store);

/** will_store_chunk() - one of them; anything may be in those that were there at first. */
struct will *will_store_chunk(const struct will_store *store, uint32_t i);

/** will_store_grow() - one more, zeroed. Return: NULL if there is no room; the log has said so. */
struct will *will_store_grow(struct will_store *store);

/** will_store_trim() - with no chunk in use, give their memory back. */
void will_store_trim(struct will_store *store);

/**
 * will_store_name_port() - a handle means a port of a device from now on
 * @device: PORTD_DEVICE_BYTES, ended by '\0'
 */
void will_store_name_port(struct will_store *store, uint8_t handle, const char *device,
			  uint8_t port_num);

/** will_store_port() - which port is it? Return: false if the handle means none. */
bool will_store_port(const struct will_store *store, uint8_t handle, const char **ret_device,
		     uint8_t *ret_port_num);

#endif
