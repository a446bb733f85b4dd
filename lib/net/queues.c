/* SPDX-License-Identifier: BSD-2-Clause */
/* The traffic classes of an interface's queues, from sysfs: netlink does not report them. */
#include "lib/net/internal.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool queue_has_class(int folder, const char *queue)
{
	char path[64], text[16];
	ssize_t bytes;
	int fd;

	if (snprintf(path, sizeof(path), "%s/traffic_class", queue) >= (int)sizeof(path))
		return false;
	fd = openat(folder, path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	bytes = read(fd, text, sizeof(text) - 1);
	close(fd);
	text[bytes > 0 ? bytes : 0] = '\0';
	return atoi(text) > 0;
}

bool net_queues_have_classes(const char *folder)
{
	DIR *dir = opendir(folder);
	const struct dirent *entry;
	bool found = false;

	if (!dir)
		return false;
	while (!found && (entry = readdir(dir)))
		found = !strncmp(entry->d_name, "tx-", 3) &&
			queue_has_class(dirfd(dir), entry->d_name);
	closedir(dir);
	return found;
}
