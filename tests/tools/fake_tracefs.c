/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A tracefs for the program that this is preloaded into, in the folder $FAKE_TRACEFS: a new folder
 * in its instances/ gets the files of an instance, the events that $FAKE_EVENTS names, and the
 * option record-cmd of that moment. The file pipe of the folder contains their trace.
 */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define TRACEFS	  "/sys/kernel/tracing"
#define INSTANCES TRACEFS "/instances/"

/* The next definition of a function. */
#define REAL(function) ((__typeof__(&(function)))dlsym(RTLD_NEXT, #function))

static const char *place_of(const char *path, char place[PATH_MAX])
{
	if (strncmp(path, TRACEFS, strlen(TRACEFS)) != 0)
		return path;
	snprintf(place, PATH_MAX, "%s%s", getenv("FAKE_TRACEFS"), path + strlen(TRACEFS));
	return place;
}

static void make_file(const char *folder, const char *name)
{
	char path[2 * PATH_MAX];
	int fd;

	if (snprintf(path, sizeof(path), "%s/%s", folder, name) >= (int)sizeof(path))
		return;
	fd = REAL(open)(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	if (fd >= 0)
		close(fd);
}

static void make_event(const char *instance, const char *event)
{
	char path[2 * PATH_MAX];
	char *slash;

	snprintf(path, sizeof(path), "%s/events/%s/", instance, event);
	for (slash = strchr(path + strlen(instance) + 1, '/'); slash;
	     slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		REAL(mkdir)(path, 0700);
		*slash = '/';
	}
	make_file(path, "enable");
	make_file(path, "filter");
}

static void copy_option(const char *instance)
{
	char path[2 * PATH_MAX], value = '0';
	int fd;

	snprintf(path, sizeof(path), "%s/options/record-cmd", getenv("FAKE_TRACEFS"));
	fd = REAL(open)(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || read(fd, &value, 1) != 1)
		perror(path);
	close(fd);
	snprintf(path, sizeof(path), "%s/record-cmd", instance);
	fd = REAL(open)(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	if (fd < 0 || write(fd, &value, 1) != 1)
		perror(path);
	close(fd);
}

static void make_instance(const char *instance)
{
	static const char *const files[] = { "buffer_percent", "buffer_size_kb", "trace_clock" };
	char pipe[2 * PATH_MAX], path[2 * PATH_MAX], *events = strdup(getenv("FAKE_EVENTS"));
	const char *event;
	size_t i;

	for (i = 0; i < sizeof(files) / sizeof(files[0]); i++)
		make_file(instance, files[i]);
	copy_option(instance);
	for (event = strtok(events, " "); event; event = strtok(NULL, " "))
		make_event(instance, event);
	free(events);
	snprintf(pipe, sizeof(pipe), "%s/pipe", getenv("FAKE_TRACEFS"));
	snprintf(path, sizeof(path), "%s/trace_pipe", instance);
	if (link(pipe, path))
		perror(path);
}

int access(const char *path, int mode)
{
	char place[PATH_MAX];

	return REAL(access)(place_of(path, place), mode);
}

int mkdir(const char *path, mode_t mode)
{
	const bool is_instance = strncmp(path, INSTANCES, strlen(INSTANCES)) == 0;
	char place[PATH_MAX];
	int ret = REAL(mkdir)(place_of(path, place), mode);

	if (!ret && is_instance)
		make_instance(place);
	return ret;
}

static int remove_one(const char *path, const struct stat *stat, int type, struct FTW *where)
{
	(void)stat, (void)type, (void)where;
	return remove(path);
}

/* tracefs removes an instance with all its files. */
int rmdir(const char *path)
{
	char place[PATH_MAX];

	if (strncmp(path, INSTANCES, strlen(INSTANCES)) != 0)
		return REAL(rmdir)(path);
	return nftw(place_of(path, place), remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

DIR *opendir(const char *path)
{
	char place[PATH_MAX];

	return REAL(opendir)(place_of(path, place));
}

int open(const char *path, int flags, ...)
{
	char place[PATH_MAX];
	va_list args;
	mode_t mode;

	va_start(args, flags);
	mode = flags & O_CREAT ? va_arg(args, mode_t) : 0;
	va_end(args);
	return REAL(open)(place_of(path, place), flags, mode);
}
