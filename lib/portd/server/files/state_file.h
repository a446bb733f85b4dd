/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * PATH.state: the state that survives a cmportd, and the lock that only one cmportd holds. It has a
 * head; an entry for each process that is or was a client; a secret for each block of comm ids; and
 * the tracked connections, see tracked_file.h.
 *
 * A killed process has completed its stores up to some point, so each update ends with the store
 * that makes it valid. Any content is safe: at most a wrong process is waited for, for seconds.
 */
#ifndef LIB_PORTD_SERVER_FILES_STATE_FILE_H
#define LIB_PORTD_SERVER_FILES_STATE_FILE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define STATE_FILE_SUFFIX      ".state"
#define STATE_FILE_CLIENTS_MAX 4096
#define STATE_FILE_TRACKED_AT  598016 /* the tracked connections, the last part of the file */

struct state_file;
struct tracked_store;

/**
 * state_file_open() - open the file, creating it if it is missing, lock it, and read it
 * @folder_fd: the folder, in which the last component of @path is looked up
 * @path:      the full path, for the log
 * @ret:       to be released with state_file_close()
 *
 * Return: 0; -EADDRINUSE if another process holds the lock; -EPERM if the file is owned by another
 * user, or is not a regular file; -errno. Except for -EADDRINUSE, the log names the cause.
 */
int state_file_open(int folder_fd, const char *path, struct state_file **ret);

/** state_file_holder() - the process that locked the file last. Return: its pid, 0 if unknown. */
pid_t state_file_holder(int folder_fd, const char *path);

/** state_file_close() - release the lock; the file stays. NULL is allowed. */
void state_file_close(struct state_file *file);

/**
 * state_file_tracked() - the store of tracked connections, owned by @file; NULL if there is no room
 */
struct tracked_store *state_file_tracked(struct state_file *file);

/** state_file_next_block() - the number of the next block of comm ids, which is not taken */
uint16_t state_file_next_block(const struct state_file *file);

/**
 * state_file_id_block() - take the number of a block of comm ids: the next one, after @skip others
 *
 * Numbers count up from a random start, across restarts too: each is written to the file before it
 * is returned.
 */
uint16_t state_file_id_block(struct state_file *file, unsigned int skip);

/** state_file_lend() - record that a block of comm ids was handed out. Return: its new secret. */
uint64_t state_file_lend(struct state_file *file, uint16_t block);

/**
 * state_file_was_lent() - return whether @secret is that of the latest holder of a block
 *
 * If the file was missing at the start, earlier blocks are unknown, and any secret is accepted for
 * 10 s. An administrator who removes the file accepts that.
 */
bool state_file_was_lent(const struct state_file *file, uint16_t block, uint64_t secret);

/**
 * state_file_add_client() - record a client process; a process may be added several times
 * @pid: 0, for a process in a pid namespace that we cannot see, is not recorded
 *
 * Processes beyond STATE_FILE_CLIENTS_MAX are not recorded; the next cmportd will not wait for
 * them.
 *
 * Return: process_start() of @pid.
 */
uint32_t state_file_add_client(struct state_file *file, pid_t pid);

/** state_file_remove_client() - record that a client has disconnected */
void state_file_remove_client(struct state_file *file, pid_t pid);

/**
 * state_file_pending() - count the clients of the previous cmportd that may still resume
 *
 * These are the clients recorded when it ended. A client is no longer pending after
 * state_file_resumed(), or when its process has ended, which is checked at most every 5 ms.
 */
unsigned int state_file_pending(struct state_file *file);

/**
 * state_file_resumed() - record that a client of the previous cmportd has reported everything
 *
 * Return: whether it was pending.
 */
bool state_file_resumed(struct state_file *file, pid_t pid);

#endif
