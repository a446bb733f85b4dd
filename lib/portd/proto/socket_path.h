/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The path of cmportd's socket, as programs, tools and cmportd itself find it. No file is touched.
 */
#ifndef LIB_PORTD_PROTO_SOCKET_PATH_H
#define LIB_PORTD_PROTO_SOCKET_PATH_H

#include <stdbool.h>

#define SOCKET_PATH_BYTES   108 /* of sockaddr_un */
#define SOCKET_PATH_DEFAULT "/run/purecm/cmportd.sock"

/**
 * socket_path_absolute() - a socket's path, from the root if it was not
 *
 * Return: 0; -ENAMETOOLONG if no socket can have it; -errno.
 */
int socket_path_absolute(const char *path, char ret[SOCKET_PATH_BYTES]);

/**
 * socket_path_find() - the socket's path: $PURECM_SOCKET, else SOCKET_PATH_DEFAULT
 * @ret: filled; nothing of the environment is believed in a setuid program
 *
 * Return: as socket_path_absolute().
 */
int socket_path_find(char ret[SOCKET_PATH_BYTES]);

/** socket_path_is_served() - does a cmportd listen there? It sees somebody come and go. */
bool socket_path_is_served(const char *path);

#endif
