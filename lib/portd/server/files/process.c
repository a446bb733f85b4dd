/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Processes: see process.h.
 */
#include "lib/portd/server/files/process.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"

#define STAT_START 22 /* field of /proc/PID/stat: start time in clock ticks since boot */
#define STAT_BYTES 1024

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif

/* The name in field 2 may contain anything; no later field contains a parenthesis. */
uint32_t process_start(pid_t pid)
{
	char path[32], stat[STAT_BYTES];
	unsigned int field;
	char *at;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	fd_read_file(path, stat, sizeof(stat));
	at = strrchr(stat, ')');
	for (field = 2; at && field < STAT_START; field++)
		at = strchr(at + 1, ' ');
	return at ? (uint32_t)strtoull(at, NULL, 10) : 0;
}

/*
 * A pidfd keeps naming the process that it was opened for. The start time is read after opening,
 * and tells whether that process is the right one.
 */
bool process_watch(pid_t pid, uint32_t start, int *ret_fd)
{
	int fd = (int)syscall(SYS_pidfd_open, pid, 0);
	uint32_t its;

	if (fd < 0 && errno == ESRCH)
		return false;
	its = process_start(pid);
	if (its && start && its != start) {
		if (fd >= 0)
			close(fd);
		return false;
	}
	*ret_fd = fd;
	return true;
}

bool process_has_ended(pid_t pid, int fd)
{
	struct pollfd pfd = { .fd = fd, .events = POLLIN };

	if (fd >= 0)
		return poll(&pfd, 1, 0) > 0;
	return kill(pid, 0) && errno == ESRCH;
}

bool process_of_socket_has_ended(int fd)
{
	int pidfd = -1;
	socklen_t bytes = sizeof(pidfd);
	bool has_ended;

	if (getsockopt(fd, SOL_SOCKET, SO_PEERPIDFD, &pidfd, &bytes))
		return errno == ESRCH || errno == EINVAL; /* it was waited for */
	has_ended = process_has_ended(0, pidfd);
	close(pidfd);
	return has_ended;
}
