/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Ends the processes of a host, which have its folder in their environment. They would remain if
 * tools/fabric/fabric was killed.
 */
#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/fabric/host/host.h"

#define ENVIRONMENT_MAX (1 << 20)

/* Return: size of a process's environment in bytes, or 0. */
static size_t read_environment(const char *pid, char *ret)
{
	char path[PATH_MAX];
	size_t n = 0;
	ssize_t more = 1;
	int fd;

	snprintf(path, sizeof(path), "/proc/%.16s/environ", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	while (fd >= 0 && more > 0 && n < ENVIRONMENT_MAX) {
		more = read(fd, ret + n, ENVIRONMENT_MAX - n);
		n += more > 0 ? (size_t)more : 0;
	}
	if (fd >= 0)
		close(fd);
	return n;
}

static bool is_process_of_host(const struct host *host, const char *pid, char *environment)
{
	char wanted[PATH_MAX];
	int n_wanted = snprintf(wanted, sizeof(wanted), FAB_ENV "=%s/hosts/%s", host->folder.dir,
				host->folder.host);
	size_t n = read_environment(pid, environment);

	return n && memmem(environment, n, wanted, (size_t)n_wanted + 1);
}

void sweep_processes(const struct host *host)
{
	char *environment = malloc(ENVIRONMENT_MAX);
	DIR *dir = opendir("/proc");
	struct dirent *entry;

	while (environment && dir && (entry = readdir(dir))) {
		int pid = atoi(entry->d_name);

		if (isdigit((unsigned char)entry->d_name[0]) && pid != getpid() &&
		    is_process_of_host(host, entry->d_name, environment))
			kill(pid, SIGKILL);
	}
	if (dir)
		closedir(dir);
	free(environment);
}
