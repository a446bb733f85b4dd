/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * PATH.state: what a cmportd must know of the one before it, and the lock that only one of them
 * holds. Called by socket_dir.c.
 *
 * Every record is written by itself and bears a check, so that a process that is killed while it
 * writes loses at most what it was just about to note, and any other content counts as nothing.
 */
#ifndef LIB_PORTD_SERVER_STATE_FILE_H
#define LIB_PORTD_SERVER_STATE_FILE_H

#include <stdint.h>
#include <sys/types.h>

struct state_file;

/**
 * state_file_open() - open the file, made if it is missing, lock it, and read what is in it
 * @folder_fd: the folder, in which the last part of @path is looked up
 * @path:      all of it, for the log
 * @ret:       to be given back with state_file_close()
 *
 * Return: 0; -EADDRINUSE if another process holds it; -EPERM if the file is somebody else's, or
 * no file; -errno. Other than for -EADDRINUSE, the log says what is in the way.
 */
int state_file_open(int folder_fd, const char *path, struct state_file **ret);

/** state_file_holder() - the process that has recorded itself last. Return: its id, 0 if unknown.
 */
pid_t state_file_holder(int folder_fd, const char *path);

/** state_file_close() - let go of the lock; the file stays. NULL is allowed. */
void state_file_close(struct state_file *file);

/** state_file_id_block() - as socket_dir_id_block() */
uint16_t state_file_id_block(struct state_file *file);

/** state_file_add_client() - as socket_dir_add_client() */
uint32_t state_file_add_client(struct state_file *file, pid_t pid);

/** state_file_remove_client() - as socket_dir_remove_client() */
void state_file_remove_client(struct state_file *file, pid_t pid);

/** state_file_pending() - as socket_dir_pending() */
unsigned int state_file_pending(struct state_file *file);

/** state_file_resumed() - as socket_dir_resumed() */
void state_file_resumed(struct state_file *file, pid_t pid);

#endif
