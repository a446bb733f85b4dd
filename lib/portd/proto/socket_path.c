/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The path of cmportd's socket: see socket_path.h.
 */
#include "lib/portd/proto/socket_path.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/env.h"

_Static_assert(sizeof(((struct sockaddr_un *)0)->sun_path) == SOCKET_PATH_BYTES,
	       "a path that is accepted can be bound");

int socket_path_absolute(const char *path, char ret[SOCKET_PATH_BYTES])
{
	char folder[PATH_MAX];
	int n;

	if (*path == '/')
		n = snprintf(ret, SOCKET_PATH_BYTES, "%s", path);
	else if (getcwd(folder, sizeof(folder)))
		n = snprintf(ret, SOCKET_PATH_BYTES, "%s/%s", folder, path);
	else
		return -errno;
	return n < SOCKET_PATH_BYTES ? 0 : -ENAMETOOLONG;
}

int socket_path_find(char ret[SOCKET_PATH_BYTES])
{
	const char *path = env_get("PURECM_SOCKET");

	return socket_path_absolute(path && *path ? path : SOCKET_PATH_DEFAULT, ret);
}

bool socket_path_is_served(const char *path)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	bool served;

	if (fd < 0)
		return false;
	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s", path);
	served = !connect(fd, (struct sockaddr *)&addr, sizeof(addr)) || errno == EAGAIN;
	close(fd);
	return served;
}

static int try_folder(const char *folder)
{
	return faccessat(AT_FDCWD, *folder ? folder : "/", W_OK | X_OK, AT_EACCESS) ? -errno : 0;
}

/* cmportd makes one folder, but not its parents. */
int socket_path_try(const char *path)
{
	char folder[SOCKET_PATH_BYTES];
	int err;

	snprintf(folder, sizeof(folder), "%s", path);
	*strrchr(folder, '/') = '\0';
	err = try_folder(folder);
	if (err != -ENOENT || !*folder)
		return err;
	*strrchr(folder, '/') = '\0';
	return try_folder(folder);
}
