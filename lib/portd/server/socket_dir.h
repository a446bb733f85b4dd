/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where a cmportd is found: its socket, and the file beside it, which is locked by the one that
 * runs and tells the next one what it must know of it.
 */
#ifndef LIB_PORTD_SERVER_SOCKET_DIR_H
#define LIB_PORTD_SERVER_SOCKET_DIR_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define STATE_FILE_CLIENTS_MAX 4096

struct socket_dir;

/** socket_dir_is_handed_over() - has systemd a socket for this process (LISTEN_PID, LISTEN_FDS)? */
bool socket_dir_is_handed_over(void);

/**
 * socket_dir_take() - be the cmportd of a path, or find that there is one
 * @path: of the socket, absolute if the process changes its folder. Its own folder is made if it
 *        is missing (mode 0755); PATH.state is made and locked; a socket that a dead one left is
 *        replaced. If systemd hands a socket over, it is used, and must be the one of @path.
 * @ret:  to be given back with socket_dir_leave()
 *
 * If the one that has it neither serves nor lets go, it is waited for, 3 s at most.
 *
 * Return: 0; -EADDRINUSE if another one has it; -EPERM if, for root, others may write to the
 * folder (sticky ones like /tmp are fine) or have put something in the way; -EEXIST if something
 * is there that is no socket; -EINVAL for what systemd handed over; -errno. The log says more.
 */
int socket_dir_take(const char *path, struct socket_dir **ret);

/** socket_dir_listen_fd() - the listening socket: non-blocking, mode 0666, SOCK_SEQPACKET. */
int socket_dir_listen_fd(const struct socket_dir *dir);

/** socket_dir_is_activated() - did systemd hand the socket over? Then it stays when we go. */
bool socket_dir_is_activated(const struct socket_dir *dir);

/**
 * socket_dir_open_file() - open a file of ours beside the socket: PATH and a suffix
 * @ret_fd: owned by the caller
 *
 * Nobody else uses it while the directory is ours. Return: as own_file_open(); then nothing is
 * open.
 */
int socket_dir_open_file(const struct socket_dir *dir, const char *suffix, int *ret_fd);

/** socket_dir_remove_file() - remove it, if it is there. */
void socket_dir_remove_file(const struct socket_dir *dir, const char *suffix);

/**
 * socket_dir_id_block() - the number of the next block of comm ids
 *
 * Counts up from a random number, over restarts too: it is in the file before it is handed out.
 */
uint16_t socket_dir_id_block(struct socket_dir *dir);

/**
 * socket_dir_add_client() - note that a process is our client; counted, a process may come twice
 * @pid: 0, of one in a pid namespace that we cannot see, is not recorded
 *
 * Nobody is recorded beyond STATE_FILE_CLIENTS_MAX: the next cmportd will not wait for them.
 *
 * Return: process_start() of it.
 */
uint32_t socket_dir_add_client(struct socket_dir *dir, pid_t pid);

/** socket_dir_remove_client() - note that it has gone. */
void socket_dir_remove_client(struct socket_dir *dir, pid_t pid);

/**
 * socket_dir_pending() - how many clients of a predecessor are still awaited
 *
 * They are the clients recorded when it died or left. One is no longer pending when
 * socket_dir_resumed() was called for it or its process is gone; that is looked at every 5 ms at
 * most.
 */
unsigned int socket_dir_pending(struct socket_dir *dir);

/** socket_dir_resumed() - a client of a predecessor has told us all. */
void socket_dir_resumed(struct socket_dir *dir, pid_t pid);

/**
 * socket_dir_leave() - let go: no socket (unless activated) is left behind; NULL is allowed
 *
 * PATH.state stays, with the next block of comm ids, and with the clients recorded in it:
 * the next one waits for them.
 */
void socket_dir_leave(struct socket_dir *dir);

#endif
