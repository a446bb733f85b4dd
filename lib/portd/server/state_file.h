/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * PATH.state: all that outlives a cmportd, for the next one, and the lock that only one of them
 * holds. It has two heads, written in turn so that one of them is always whole; an entry for each
 * process that is or was a client; a secret for each block of comm ids; and the tracked
 * connections, see tracked_store.h.
 *
 * Heads and entries are written whole and bear a check, so a process that is killed while it writes
 * loses at most that one update, and any other content counts as nothing.
 */
#ifndef LIB_PORTD_SERVER_STATE_FILE_H
#define LIB_PORTD_SERVER_STATE_FILE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define STATE_FILE_SUFFIX      ".state"
#define STATE_FILE_CLIENTS_MAX 4096
#define STATE_FILE_TRACKED_AT  598016 /* the tracked connections, behind all else */

struct state_file;
struct tracked_store;

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

/** state_file_tracked() - where connections are tracked; the file's. NULL: there is no room. */
struct tracked_store *state_file_tracked(struct state_file *file);

/**
 * state_file_id_block() - the number of the next block of comm ids
 *
 * Counts up from a random number, over restarts too: it is in the file before it is handed out.
 */
uint16_t state_file_id_block(struct state_file *file);

/** state_file_lend() - a block of comm ids is handed out. Return: the new secret of who gets it. */
uint64_t state_file_lend(struct state_file *file, uint16_t block);

/**
 * state_file_was_lent() - is it the secret of whom a block was handed out to, and to nobody since?
 *
 * If there was no file, nothing is known of blocks that were handed out before; for 10 s anybody's
 * is. Who has removed the file has that on his conscience.
 */
bool state_file_was_lent(const struct state_file *file, uint16_t block, uint64_t secret);

/**
 * state_file_add_client() - record that a process is our client; counted, a process may come twice
 * @pid: 0, of one in a pid namespace that we cannot see, is not recorded
 *
 * Nobody is recorded beyond STATE_FILE_CLIENTS_MAX: the next cmportd will not wait for them.
 *
 * Return: process_start() of it.
 */
uint32_t state_file_add_client(struct state_file *file, pid_t pid);

/** state_file_remove_client() - record that a client has left. */
void state_file_remove_client(struct state_file *file, pid_t pid);

/**
 * state_file_pending() - how many clients of a predecessor may still resume
 *
 * They are the clients recorded when it died or left. One is no longer pending when
 * state_file_resumed() was called for it or its process is gone; that is looked at every 5 ms at
 * most.
 */
unsigned int state_file_pending(struct state_file *file);

/** state_file_resumed() - a client of a predecessor has reported everything. */
void state_file_resumed(struct state_file *file, pid_t pid);

#endif
