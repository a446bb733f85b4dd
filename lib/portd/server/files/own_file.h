/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A file of our own beside the socket, in a folder where other users may be able to create files.
 * Without a folder (-1) it is a file in memory, which ends with its descriptors.
 */
#ifndef LIB_PORTD_SERVER_FILES_OWN_FILE_H
#define LIB_PORTD_SERVER_FILES_OWN_FILE_H

/**
 * own_file_open() - open a file for reading and writing, mode 0600; created if it is missing
 * @folder_fd: the folder, in which the last component of @path is looked up
 * @path:      the full path, for the log
 * @ret_fd:    close-on-exec; set also on error if the file was opened, and to be closed by the
 *             caller
 *
 * Return: 0; -EPERM if it is a symbolic link, not a regular file, or owned by another user; -errno.
 * The log names the cause.
 */
int own_file_open(int folder_fd, const char *path, int *ret_fd);

/** own_file_look() - open an existing file for reading. Return: the descriptor or -errno. */
int own_file_look(int folder_fd, const char *path);

#endif
