/* SPDX-License-Identifier: BSD-2-Clause */
/* File descriptors that are -1 once closed. */
#ifndef BASE_FD_H
#define BASE_FD_H

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <unistd.h>

#ifndef SO_BINDTOIFINDEX
#define SO_BINDTOIFINDEX 62
#endif

/** fd_close() - close *@fd unless it is -1, and set it to -1. */
static inline void fd_close(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

/** fd_give_up() - close a descriptor after a failed call. Return: -errno of that call. */
static inline int fd_give_up(int fd)
{
	int err = errno;

	close(fd);
	return -err;
}

/**
 * fd_read_file() - read the beginning of a file, such as one of /proc, as text
 * @text: terminated; "" if the file cannot be read
 *
 * Return: its bytes; 0 if the file cannot be read; -errno if it cannot be opened.
 */
ssize_t fd_read_file(const char *path, char *text, size_t room);

/**
 * fd_check_for_verbs() - check that libibverbs can open the descriptors that it needs
 *
 * It loads its drivers once per process, at its first list of devices: without descriptors it would
 * find none, and never retry.
 *
 * Return: 0, -EMFILE or -ENFILE.
 */
int fd_check_for_verbs(void);

/** fd_option_is() - return whether a descriptor is a socket with this value of a SOL_SOCKET option
 */
static inline bool fd_option_is(int fd, int option, int wanted)
{
	socklen_t bytes = sizeof(int);
	int value = -1;

	return !getsockopt(fd, SOL_SOCKET, option, &value, &bytes) && value == wanted;
}

/**
 * fd_bind_to_interface() - bind a socket to an interface, or to a VRF
 *
 * Return: 0 or -errno: -EPERM before Linux 5.7 without CAP_NET_RAW.
 */
static inline int fd_bind_to_interface(int fd, uint32_t ifindex)
{
	int value = (int)ifindex;

	return setsockopt(fd, SOL_SOCKET, SO_BINDTOIFINDEX, &value, sizeof(value)) ? -errno : 0;
}

#endif
