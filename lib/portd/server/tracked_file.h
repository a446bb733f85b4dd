/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The part of PATH.state that the tracked connections lie in: a head, which says what the rest
 * means, and chunks of tracked connections. It is mapped: a tracked connection is written by plain
 * stores.
 *
 * A process that is killed has done its stores up to some point, in their order, and none after it:
 * whatever takes more than one of them is sealed by the last. What has no seal, or was written by
 * another version, before the host booted or by somebody else counts as nothing.
 *
 * A journal would be a second form of the same data, to be kept in step and truncated. It is a file
 * and not a descriptor in systemd's store, because there is not always a systemd.
 */
#ifndef LIB_PORTD_SERVER_TRACKED_FILE_H
#define LIB_PORTD_SERVER_TRACKED_FILE_H

#include "lib/portd/server/tracked_store.h"

#define TRACKED_CHUNKS_MAX 512 /* are kept: 16 MiB of /run */

struct tracked_head;

struct tracked_file {
	struct tracked_store store; /* first */
	int fd;			    /* the state file's */
	struct tracked_head *head;  /* NULL: there is no room for anything */
	bool is_full;		    /* and it was said */
};

/**
 * tracked_file_open() - map the part, and make it one of ours if it is not
 * @file:      zeroed; to be given back with tracked_file_close(), also on an error
 * @fd:        of the state file, which nobody else uses meanwhile; stays the caller's
 * @folder_fd: the folder, in which the last part of @path is looked up
 * @path:      of the state file. What PATH.wills has, where versions before this one tracked
 *             connections, is taken over, and that file is removed.
 *
 * Return: 0 or -errno: it cannot be mapped, or has no room for anything.
 */
int tracked_file_open(struct tracked_file *file, int fd, int folder_fd, const char *path);

/** tracked_file_close() - the file stays as it is. Zeroed is allowed. */
void tracked_file_close(struct tracked_file *file);

#endif
