/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where a cmportd is found: its socket, and the file beside it, which is locked by the one that
 * runs and tells the next one what it must know of it.
 */
#ifndef LIB_PORTD_SERVER_SOCKET_DIR_H
#define LIB_PORTD_SERVER_SOCKET_DIR_H

#include <stdbool.h>

struct socket_dir;
struct state_file;

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

/** socket_dir_state_file() - PATH.state; the directory's. */
struct state_file *socket_dir_state_file(const struct socket_dir *dir);

/**
 * socket_dir_open() - open a file of our own beside the socket, made if it is missing
 * @suffix: what its name has after the socket's
 * @ret_fd: the caller's
 *
 * Return: 0; as own_file_open().
 */
int socket_dir_open(const struct socket_dir *dir, const char *suffix, int *ret_fd);

/**
 * socket_dir_leave() - let go: no socket (unless activated) is left behind; NULL is allowed
 *
 * PATH.state stays, for the next one.
 */
void socket_dir_leave(struct socket_dir *dir);

#endif
