/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A library that contains only the code to start cmportd, and a program that uses it: tests install
 * either in place of the real ones. Usage: probe SOCKET, or probe SOCKET LIBRARY; prints what
 * spawn_cmportd() returns.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#include "lib/portd/client/spawn.h"

__attribute__((visibility("default"))) int probe_spawn(const char *path);

int probe_spawn(const char *path)
{
	int fd; /* the pipe to our end, which is not read */

	return spawn_cmportd(path, -1, &fd);
}

static int spawn_from(const char *library, const char *path)
{
	void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
	int (*spawn)(const char *path) = NULL;

	if (handle)
		*(void **)&spawn = dlsym(handle, "probe_spawn");
	if (!spawn) {
		fprintf(stderr, "%s\n", dlerror());
		exit(EXIT_FAILURE);
	}
	return spawn(path);
}

int main(int argc, char **argv)
{
	if (argc < 2)
		return EXIT_FAILURE;
	printf("%d\n", argc > 2 ? spawn_from(argv[2], argv[1]) : probe_spawn(argv[1]));
	return EXIT_SUCCESS;
}
