/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A file of our own beside the socket, in a folder where others may be able to put things.
 */
#ifndef LIB_PORTD_SERVER_OWN_FILE_H
#define LIB_PORTD_SERVER_OWN_FILE_H

/**
 * own_file_open() - open a file for reading and writing, mode 0600, made if it is missing
 * @folder_fd: the folder, in which the last part of @path is looked up
 * @path:      all of it, for the log
 * @ret_fd:    set also on an error if it was opened; to be closed by the caller, never inherited
 *
 * Return: 0; -EPERM if it is a link, no file, or somebody else's; -errno. The log says what is in
 * the way.
 */
int own_file_open(int folder_fd, const char *path, int *ret_fd);

/** own_file_look() - open it for reading, if it is there. Return: the descriptor or -errno. */
int own_file_look(int folder_fd, const char *path);

#endif
