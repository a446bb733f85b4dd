/* SPDX-License-Identifier: BSD-2-Clause */
/* The descriptors of librdmacm and of the libraries that it uses: see preload.h. */
#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "lib/rsocket/preload/preload.h"

#define BASE_MAX 8192

static bool owned[MAP_FD_MAX + 1]; /* atomic */

/* --- vfork() -------------------------------------------------------------- */

static pid_t owner; /* of this memory */

__attribute__((constructor)) void own_memory(void)
{
	owner = getpid();
}

bool own_is_lent(void)
{
	return owner && getpid() != owner;
}

/* --- descriptors ------------------------------------------------------------ */

bool own_is_inside(const void *caller)
{
	static const char *const names[] = { "librdmacm", "libibverbs", "libibumad", "rdmav",
					     "libnl-" };
	struct dl_find_object object;
	const char *path, *file;

	if (_dl_find_object((void *)(uintptr_t)caller, &object))
		return false;
	path = object.dlfo_link_map->l_name;
	file = strrchr(path, '/'); /* a folder may have such a name, too */
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strstr(file ? file : path, names[i]))
			return true;
	return false;
}

bool own_has(int fd)
{
	return fd >= 0 && fd <= MAP_FD_MAX && __atomic_load_n(&owned[fd], __ATOMIC_RELAXED);
}

static void set_owned(int fd, bool value)
{
	if (fd >= 0 && fd <= MAP_FD_MAX && !own_is_lent())
		__atomic_store_n(&owned[fd], value, __ATOMIC_RELAXED);
}

void own_keep(int fd)
{
	set_owned(fd, true);
}

int own_close(int fd)
{
	set_owned(fd, false);
	return real()->close(fd);
}

/* Half of what the process may have, which only a program with many descriptors reaches. */
static int lowest_number(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) || limit.rlim_cur > 2 * BASE_MAX)
		return BASE_MAX;
	return (int)limit.rlim_cur / 2;
}

int own_add(int fd)
{
	int flags = fd < 0 ? -1 : real()->fcntl(fd, F_GETFD);
	int cmd = flags & FD_CLOEXEC ? F_DUPFD_CLOEXEC : F_DUPFD;
	int high = flags < 0 ? -1 : real()->fcntl(fd, cmd, lowest_number());

	if (high >= 0) {
		real()->close(fd);
		fd = high;
	}
	own_keep(fd);
	return fd;
}
