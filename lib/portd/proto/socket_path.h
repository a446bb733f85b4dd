/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The path of cmportd's socket, as used by programs, tools and cmportd. Accesses no files, except
 * socket_path_is_served() and socket_path_try().
 */
#ifndef LIB_PORTD_PROTO_SOCKET_PATH_H
#define LIB_PORTD_PROTO_SOCKET_PATH_H

#include <stdbool.h>

#define SOCKET_PATH_BYTES   108 /* size of sun_path */
#define SOCKET_PATH_DEFAULT "/run/purecm/cmportd.sock"
#define PORTD_CLIENT_FD	    3 /* of the only client of a cmportd without a path, `cmportd --client` */

/**
 * socket_path_absolute() - make a socket path absolute
 *
 * Return: 0; -ENAMETOOLONG if the path does not fit into sockaddr_un; -errno.
 */
int socket_path_absolute(const char *path, char ret[SOCKET_PATH_BYTES]);

/**
 * socket_path_find() - get the socket path: $PURECM_SOCKET, or SOCKET_PATH_DEFAULT
 * @ret: the path; a setuid program ignores the environment
 *
 * Return: as socket_path_absolute().
 */
int socket_path_find(char ret[SOCKET_PATH_BYTES]);

/** socket_path_is_served() - return whether a cmportd listens there, by connecting to it */
bool socket_path_is_served(const char *path);

/**
 * socket_path_try() - whether this user may create a socket at a path, or the folder for it
 * @path: absolute
 *
 * Return: 0, or the kernel's -errno.
 */
int socket_path_try(const char *path);

#endif
