/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * PATH.state: what a cmportd must know of the one before it, and the lock that only one of them
 * holds. Called by place.c.
 *
 * Every record is written by itself and bears a check, so that a process that is killed while it
 * writes loses at most what it was just about to note, and any other content counts as nothing.
 */
#ifndef LIB_PORTD_SERVER_NOTES_H
#define LIB_PORTD_SERVER_NOTES_H

#include <stdint.h>
#include <sys/types.h>

struct notes;

/**
 * notes_open() - open the file, made if it is missing, lock it, and read what is in it
 * @folder_fd: the folder, in which the last part of @path is looked up
 * @path:      all of it, for the log
 * @ret:       to be given back with notes_close()
 *
 * Return: 0; -EADDRINUSE if another process holds it; -EPERM if the file is somebody else's, or
 * no file; -errno. Other than for -EADDRINUSE, the log says what is in the way.
 */
int notes_open(int folder_fd, const char *path, struct notes **ret);

/** notes_holder() - the process that has noted itself last. Return: its id, 0 if unknown. */
pid_t notes_holder(int folder_fd, const char *path);

/** notes_close() - let go of the lock; the file stays. NULL is allowed. */
void notes_close(struct notes *notes);

/** notes_id_block() - as place_id_block() */
uint16_t notes_id_block(struct notes *notes);

/** notes_add_client() - as place_add_client() */
uint32_t notes_add_client(struct notes *notes, pid_t pid);

/** notes_remove_client() - as place_remove_client() */
void notes_remove_client(struct notes *notes, pid_t pid);

/** notes_missing() - as place_missing() */
unsigned int notes_missing(struct notes *notes);

/** notes_returned() - as place_returned() */
void notes_returned(struct notes *notes, pid_t pid);

#endif
