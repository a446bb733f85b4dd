/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * purecm fabric (docs/fabric.md), purecm certify (docs/hardware.md), purecm drill and purecm
 * export: run programs that were installed or built with this one, all but the last in Python.
 */
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/purecm/subcommand.h"

#define PARTS_MAX 11

/*
 * The program's directory, and files in it, the program first; the program finds the others itself.
 */
struct script {
	const char *folder;
	const char *shown; /* name in its usage */
	const char *parts[PARTS_MAX];
};

static const struct script fabric = {
	"fabric",
	"purecm fabric",
	{ "fabric", "faults.py", "furnish.py", "host_process.py", "lag.py", "listening.py",
	  "namespaces.py", "netlink.py", "plan.py", "udp_ports.py", "watch.py" },
};

static const struct script certify = {
	"certify",
	"purecm certify",
	{ "certify", "compare.py", "host.py", "link.py", "page.py", "pair.py", "scripts.py",
	  "trials.py", "ways.py" },
};

static const struct script drill = {
	"drill",
	"purecm drill",
	{ "drill" },
};

/* Directories relative to this program; in a build tree they are beside it. */
#define INSTALLED PURECM_LIB_FROM_BIN "/purecm"

/* Return: the first missing part; NULL if there is none. */
static const char *missing_part(const struct script *script, const char *folder)
{
	char path[3 * PATH_MAX];
	size_t i;

	for (i = 0; i < PARTS_MAX && script->parts[i]; i++) {
		snprintf(path, sizeof(path), "%s/%s", folder, script->parts[i]);
		if (access(path, R_OK))
			return script->parts[i];
	}
	return NULL;
}

/* Return: the path, relative if it is below the current directory. */
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

/* Return: whether this program is in a build tree of ninja. */
static bool find_build(const char *here, char ret[PATH_MAX])
{
	char path[2 * PATH_MAX];

	snprintf(path, sizeof(path), "%s/../build.ninja", here);
	if (access(path, F_OK))
		return false;
	snprintf(path, sizeof(path), "%s/..", here);
	return realpath(path, ret);
}

/* @ret: directory of the script. */
static int find_parts(const struct script *script, char ret[2 * PATH_MAX])
{
	char here[PATH_MAX], build[PATH_MAX];
	const char *missing;
	bool is_built;
	int err = find_folder(here);

	if (err)
		return err;
	is_built = find_build(here, build);
	if (is_built)
		snprintf(ret, 2 * PATH_MAX, "%s/%s", here, script->folder);
	else
		snprintf(ret, 2 * PATH_MAX, "%s%s" INSTALLED "/%s", INSTALLED[0] == '/' ? "" : here,
			 INSTALLED[0] == '/' ? "" : "/", script->folder);
	missing = missing_part(script, ret);
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

static int run_script(const struct script *script, char **argv)
{
	char folder[2 * PATH_MAX], program[3 * PATH_MAX];

	if (find_parts(script, folder))
		return STATUS_FAILED;
	snprintf(program, sizeof(program), "%s/%s", folder, script->parts[0]);
	setenv("PURECM_PROGRAM", script->shown, 1);
	command_exec(program, argv);
	complain("%s: %s%s", program, strerror(errno), errno == ENOENT ? "; it needs python3" : "");
	return STATUS_FAILED;
}

int export_main(int argc, char **argv)
{
	char program[PATH_MAX + sizeof("/purecm-export")];
	int err = find_folder(program);

	(void)argc;
	if (!err) {
		strcat(program, "/purecm-export");
		command_exec(program, argv);
		err = -errno;
	}
	complain("purecm-export, beside purecm: %s", strerror(-err));
	return STATUS_FAILED;
}

int fabric_main(int argc, char **argv)
{
	(void)argc;
	return run_script(&fabric, argv);
}

int certify_main(int argc, char **argv)
{
	(void)argc;
	return run_script(&certify, argv);
}

int drill_main(int argc, char **argv)
{
	(void)argc;
	return run_script(&drill, argv);
}
