/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The part of PATH.state that stores tracked connections: a header that describes the rest, and
 * chunks of tracked connections. It is mapped, and written with plain stores.
 *
 * A killed process has completed its stores up to some point, in program order, and none after it.
 * So an update of more than one store is sealed by its last store. Entries without a seal are
 * ignored, as are those written by another version, before the host booted, or by another user.
 *
 * A journal would be a second form of the same data, to be kept in step and truncated. systemd's
 * descriptor store is not used, because systemd is not always there.
 */
#ifndef LIB_PORTD_SERVER_FILES_TRACKED_FILE_H
#define LIB_PORTD_SERVER_FILES_TRACKED_FILE_H

#include "lib/portd/server/ledger/tracked.h"

#define TRACKED_CHUNK	   256 /* tracked connections */
#define TRACKED_CHUNKS_MAX 512 /* limit of stored chunks: 16 MiB of /run */

struct tracked_head;

struct tracked_store {
	uint32_t n_chunks;
	bool is_same_view;	   /* process ids in it are of our pid namespace */
	int fd;			   /* of the state file */
	struct tracked_head *head; /* NULL: no room for anything */
	bool is_full;		   /* room has run out, which was logged */
};

/**
 * tracked_file_open() - map the part, and initialize it unless it is valid
 * @store: zeroed; to be released with tracked_file_close(), also on error
 * @fd:    the state file, locked by the caller, who keeps it
 * @path:  of the state file, for the log
 * @is_moved: the rest of the file is another version's, which may store this part elsewhere
 *
 * Return: 0, or -errno if it cannot be mapped or has no room for anything.
 */
int tracked_file_open(struct tracked_store *store, int fd, const char *path, bool is_moved);

/** tracked_file_close() - unmap the part; its content stays. A zeroed @store is allowed. */
void tracked_file_close(struct tracked_store *store);

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
