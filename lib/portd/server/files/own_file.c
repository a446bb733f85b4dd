/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Files of our own: see own_file.h.
 */
#include "lib/portd/server/files/own_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"

static int refuse_file(const char *path, const char *what)
{
	log_warn("%s %s; remove it, or choose another socket with --socket or PURECM_SOCKET", path,
		 what);
	return -EPERM;
}

/* In a folder like /tmp any user could have created it. */
static int look_at(int fd, const char *path)
{
	struct stat stat;

	if (fstat(fd, &stat))
		return -errno;
	if (!S_ISREG(stat.st_mode))
		return refuse_file(path, "is no file");
	if (stat.st_uid != geteuid() || stat.st_nlink != 1)
		return refuse_file(path, "is somebody else's");
	return fchmod(fd, 0600) ? -errno : 0;
}

static int open_at(int folder_fd, const char *path, int flags)
{
	const char *slash = strrchr(path, '/');
	int fd = openat(folder_fd, slash ? slash + 1 : path,
			flags | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC | O_NOCTTY, 0600);

	return fd < 0 ? -errno : fd;
}

static int make_in_memory(int *ret_fd)
{
	int fd = memfd_create("purecm", MFD_CLOEXEC);

	if (fd < 0)
		return -errno;
	*ret_fd = fd;
	return 0;
}

int own_file_open(int folder_fd, const char *path, int *ret_fd)
{
	int fd;

	if (folder_fd < 0)
		return make_in_memory(ret_fd);
	fd = open_at(folder_fd, path, O_RDWR | O_CREAT);
	if (fd == -ELOOP)
		return refuse_file(path, "is a link");
	if (fd < 0) {
		log_warn("%s cannot be opened: %s", path, strerror(-fd));
		return fd;
	}
	*ret_fd = fd;
	return look_at(fd, path);
}

int own_file_look(int folder_fd, const char *path)
{
	return open_at(folder_fd, path, O_RDONLY);
}
