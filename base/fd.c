/* SPDX-License-Identifier: BSD-2-Clause */
/* Reading small files, and checks for free descriptors: see fd.h. */
#include "base/fd.h"

#include <fcntl.h>

#define N_WANTED 4 /* descriptors that libibverbs opens at once while it loads drivers */

ssize_t fd_read_file(const char *path, char *text, size_t room)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n;

	text[0] = '\0';
	if (fd < 0)
		return -errno;
	n = read(fd, text, room - 1);
	close(fd);
	if (n < 0)
		return 0;
	text[n] = '\0';
	return n;
}

int fd_check_for_verbs(void)
{
	int fd[N_WANTED];
	int i, n, err = 0;

	for (n = 0; n < N_WANTED && !err; n++) {
		fd[n] = open("/dev/null", O_RDONLY | O_CLOEXEC);
		if (fd[n] < 0 && (errno == EMFILE || errno == ENFILE))
			err = -errno;
	}
	for (i = 0; i < n; i++)
		fd_close(&fd[i]);
	return err;
}
