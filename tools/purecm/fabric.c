/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * purecm fabric: hosts with RDMA devices on a machine that has none. Runs
 * the program fabric, which was installed or built with this one (docs/fabric.md).
 */
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/purecm/command.h"

/* What is beside each other in either place; the program fabric itself looks for the rest. */
static const char *const parts[] = {
	"fabric",	 "faults.py",  "furnish.py", "host_process.py",
	"namespaces.py", "netlink.py", "plan.py",
};

/* From the folder of this program. */
#define INSTALLED PURECM_LIB_FROM_BIN "/purecm/fabric"
#define BUILT	  "fabric"

/* Return: NULL if nothing is missing. */
static const char *missing_part(const char *folder)
{
	char path[3 * PATH_MAX];
	size_t i;

	for (i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		snprintf(path, sizeof(path), "%s/%s", folder, parts[i]);
		if (access(path, R_OK))
			return parts[i];
	}
	return NULL;
}

/* Return: the path as it would be typed, which is shorter below the current folder. */
static const char *as_typed(const char *path)
{
	char here[PATH_MAX];
	size_t n = getcwd(here, sizeof(here)) ? strlen(here) : 0;

	return n && strncmp(path, here, n) == 0 && path[n] == '/' ? path + n + 1 : path;
}

static int find_folder(char ret[PATH_MAX])
{
	ssize_t n = readlink("/proc/self/exe", ret, PATH_MAX - 1);

	if (n < 0)
		return -errno;
	ret[n] = '\0';
	*strrchr(ret, '/') = '\0';
	return 0;
}

/* Return: whether this program is in a build folder, as ninja leaves it. */
static bool find_build(const char *here, char ret[PATH_MAX])
{
	char path[2 * PATH_MAX];

	snprintf(path, sizeof(path), "%s/../build.ninja", here);
	if (access(path, F_OK))
		return false;
	snprintf(path, sizeof(path), "%s/..", here);
	return realpath(path, ret);
}

/* @ret: the folder of the program fabric. */
static int find_parts(char ret[2 * PATH_MAX])
{
	char here[PATH_MAX], build[PATH_MAX];
	const char *place, *missing;
	bool is_built;
	int err = find_folder(here);

	if (err)
		return err;
	is_built = find_build(here, build);
	place = is_built ? BUILT : INSTALLED;
	if (place[0] == '/')
		snprintf(ret, 2 * PATH_MAX, "%s", place);
	else
		snprintf(ret, 2 * PATH_MAX, "%s/%s", here, place);
	missing = missing_part(ret);
	if (!missing)
		return 0;
	if (is_built)
		complain("%s/%s is missing: build all of it (ninja -C %s)", as_typed(ret), missing,
			 as_typed(build));
	else
		complain("%s/%s is missing: install all of it (meson install -C build)", ret,
			 missing);
	return -ENOENT;
}

int fabric_main(int argc, char **argv)
{
	char folder[2 * PATH_MAX], program[3 * PATH_MAX];

	(void)argc;
	if (find_parts(folder))
		return STATUS_FAILED;
	snprintf(program, sizeof(program), "%s/%s", folder, parts[0]);
	setenv("PURECM_PROGRAM", "purecm fabric", 1); /* as its usage calls it */
	execv(program, argv);
	complain("%s: %s%s", program, strerror(errno), errno == ENOENT ? "; it needs python3" : "");
	return STATUS_FAILED;
}
