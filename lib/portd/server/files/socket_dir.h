/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The socket of a cmportd, and the file beside it, which the running cmportd locks and which passes
 * state to the next one.
 */
#ifndef LIB_PORTD_SERVER_FILES_SOCKET_DIR_H
#define LIB_PORTD_SERVER_FILES_SOCKET_DIR_H

#include <stdbool.h>

#include "lib/portd/server/limits.h"

struct socket_dir;
struct state_file;

/** socket_dir_is_handed_over() - return whether systemd passed a socket (LISTEN_PID, LISTEN_FDS) */
bool socket_dir_is_handed_over(void);

/**
 * socket_dir_take() - become the cmportd of a path, unless there is one
 * @path: of the socket; absolute if the process changes its working directory. The parent directory
 *        is created if it is missing (mode 0755), PATH.state is created and locked, and the stale
 *        socket of an ended cmportd is replaced. A socket passed by systemd is used, and must be
 *        the one of @path. NULL: there is no socket, and the files are in memory.
 * @ret:  to be released with socket_dir_leave()
 *
 * Waits up to 30 s for a holder of the path that neither serves nor exits.
 *
 * Return: 0; -EADDRINUSE if another cmportd has the path; -EPERM if, for root, other users may
 * write to the directory (sticky ones like /tmp are fine) or own a file in the way; -EEXIST if
 * @path is not a socket; -EINVAL for an unsuitable socket from systemd; -errno. The log says more.
 */
int socket_dir_take(const char *path, struct socket_dir **ret);

/**
 * socket_dir_listen_fd() - the listening socket: non-blocking, mode 0666, SOCK_SEQPACKET; -1: none.
 * If systemd has passed it, it is the number 3, and not removed.
 */
int socket_dir_listen_fd(const struct socket_dir *dir);

/** socket_dir_state_file() - PATH.state; owned by @dir */
struct state_file *socket_dir_state_file(const struct socket_dir *dir);

/**
 * socket_dir_open() - open a file of our own beside the socket, created if it is missing
 * @suffix: appended to the socket's name
 * @ret_fd: owned by the caller
 *
 * Return: 0; as own_file_open().
 */
int socket_dir_open(const struct socket_dir *dir, const char *suffix, int *ret_fd);

/**
 * socket_dir_leave() - unlock the path and remove the socket, unless activated; NULL is allowed
 *
 * PATH.state stays, for the next cmportd.
 */
void socket_dir_leave(struct socket_dir *dir);

#endif
