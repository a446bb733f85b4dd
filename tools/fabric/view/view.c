/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The device in /sys and /dev where a host cannot have mounts, as in most containers: a library
 * preloaded into its commands. Paths below /sys/class/infiniband* and /dev/infiniband are taken
 * from the host's folder, which has the same files as are mounted elsewhere (furnish.py). It
 * replaces functions of the C library, and calls nothing of ours. What programs do by openat() and
 * the like with a descriptor, and what the C library itself opens, stays as it is.
 */
#undef _FILE_OFFSET_BITS /* there are functions for both sizes */

#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/env.h"

#define PUBLIC __attribute__((visibility("default")))

/* Prefixes of paths, and where they are in the host's folder. */
static const struct {
	const char *from, *to;
} places[] = {
	{ "/sys/class/infiniband", "/sys/infiniband" },
	{ "/dev/infiniband", "/dev/infiniband" },
};

/* Return: the path in the host's folder, in @room; @path itself if it is none of these. */
static const char *path_in_host_folder(const char *path, char room[PATH_MAX])
{
	const char *folder = env_get("PURECM_FABRIC");
	size_t i;

	for (i = 0; folder && path && i < sizeof(places) / sizeof(places[0]); i++) {
		size_t n = strlen(places[i].from);

		if (strncmp(path, places[i].from, n))
			continue;
		if (snprintf(room, PATH_MAX, "%s%s%s", folder, places[i].to, path + n) < PATH_MAX)
			return room;
	}
	return path;
}

/* Calls the C library's function of a name. */
#define NEXT(name, ...)                                           \
	static __typeof__(&(name)) next;                          \
	char room[PATH_MAX];                                      \
	if (!next)                                                \
		next = (__typeof__(next))dlsym(RTLD_NEXT, #name); \
	return next(__VA_ARGS__)

#define SEEN path_in_host_folder(path, room)

/* A function whose first argument is the path, and whose others are passed on. */
#define REPLACE1(type, name)               \
	PUBLIC type name(const char *path) \
	{                                  \
		NEXT(name, SEEN);          \
	}

#define REPLACE2(type, name, second)                 \
	PUBLIC type name(const char *path, second b) \
	{                                            \
		NEXT(name, SEEN, b);                 \
	}

/* The argument after flags, which open() has if it may create a file. */
#define MODE_AFTER(flags)                             \
	({                                            \
		mode_t given = 0;                     \
		va_list more;                         \
                                                      \
		va_start(more, flags);                \
		if (flags & (O_CREAT | __O_TMPFILE))  \
			given = va_arg(more, mode_t); \
		va_end(more);                         \
		given;                                \
	})

#define REPLACE_OPEN(name)                                \
	PUBLIC int name(const char *path, int flags, ...) \
	{                                                 \
		const mode_t mode = MODE_AFTER(flags);    \
                                                          \
		NEXT(name, SEEN, flags, mode);            \
	}

#define REPLACE_OPENAT(name)                                          \
	PUBLIC int name(int folder, const char *path, int flags, ...) \
	{                                                             \
		const mode_t mode = MODE_AFTER(flags);                \
                                                                      \
		NEXT(name, folder, SEEN, flags, mode);                \
	}

REPLACE_OPEN(open)
REPLACE_OPEN(open64)
REPLACE_OPENAT(openat)
REPLACE_OPENAT(openat64)
REPLACE2(FILE *, fopen, const char *)
REPLACE2(FILE *, fopen64, const char *)
REPLACE1(DIR *, opendir)
REPLACE1(int, chdir)
REPLACE2(int, access, int)
REPLACE2(int, euidaccess, int)
REPLACE2(int, eaccess, int)
REPLACE2(int, stat, struct stat *)
REPLACE2(int, stat64, struct stat64 *)
REPLACE2(int, lstat, struct stat *)
REPLACE2(int, lstat64, struct stat64 *)

PUBLIC int faccessat(int folder, const char *path, int mode, int flags)
{
	NEXT(faccessat, folder, SEEN, mode, flags);
}

PUBLIC int fstatat(int folder, const char *path, struct stat *ret, int flags)
{
	NEXT(fstatat, folder, SEEN, ret, flags);
}

PUBLIC int fstatat64(int folder, const char *path, struct stat64 *ret, int flags)
{
	NEXT(fstatat64, folder, SEEN, ret, flags);
}

PUBLIC int statx(int folder, const char *path, int flags, unsigned int mask, struct statx *ret)
{
	NEXT(statx, folder, SEEN, flags, mask, ret);
}

#define REPLACE_GETXATTR(name)                                                                \
	PUBLIC ssize_t name(const char *path, const char *attribute, void *ret, size_t bytes) \
	{                                                                                     \
		NEXT(name, SEEN, attribute, ret, bytes);                                      \
	}

REPLACE_GETXATTR(getxattr)
REPLACE_GETXATTR(lgetxattr)

PUBLIC ssize_t readlink(const char *path, char *ret, size_t bytes)
{
	NEXT(readlink, SEEN, ret, bytes);
}

PUBLIC int scandir(const char *path, struct dirent ***ret, int (*wanted)(const struct dirent *),
		   int (*compare)(const struct dirent **, const struct dirent **))
{
	NEXT(scandir, SEEN, ret, wanted, compare);
}

PUBLIC int scandir64(const char *path, struct dirent64 ***ret,
		     int (*wanted)(const struct dirent64 *),
		     int (*compare)(const struct dirent64 **, const struct dirent64 **))
{
	NEXT(scandir64, SEEN, ret, wanted, compare);
}
