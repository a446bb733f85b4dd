/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The check of the librdmacm.so.1 that programs get, and of the installation's consistency. Part of
 * checkup.h.
 */
#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/purecm/checkup.h"
#include "tools/purecm/subcommand.h"

#define NAME "librdmacm.so.1"

/*
 * Files of purecm's installations that prevent the kernel's connection manager from being loaded.
 */
static const char *const module_rules[] = {
	"/etc/modprobe.d/purecm.conf",
	"/usr/lib/modprobe.d/purecm.conf",
};

/* The file that the dynamic linker finds for the library's name. */
static bool find_default(char ret[PATH_MAX])
{
	void *library = dlopen(NAME, RTLD_LAZY | RTLD_LOCAL);
	struct link_map *map;
	bool is_found = library && !dlinfo(library, RTLD_DI_LINKMAP, &map);

	if (is_found)
		snprintf(ret, PATH_MAX, "%s", map->l_name);
	return is_found;
}

/* Return: whether the linker's cache has purecm's library. */
static bool find_in_cache(char ret[PATH_MAX])
{
	FILE *list = popen("PATH=$PATH:/usr/sbin:/sbin ldconfig -p 2>/dev/null", "re");
	char line[PATH_MAX], *path;
	bool is_found = false;

	while (list && fgets(line, sizeof(line), list)) {
		path = strstr(line, NAME " ") ? strstr(line, "=> ") : NULL;
		if (!path || is_found)
			continue;
		path += strlen("=> ");
		path[strcspn(path, "\n")] = '\0';
		is_found = run_is_purecm(path);
		snprintf(ret, PATH_MAX, "%s", path);
	}
	if (list)
		pclose(list);
	return is_found;
}

/* --- builds -------------------------------------------------------------- */

#define BUILD_ID_BYTES 20

/*
 * The linker's note of a build, after its header. Packages of one build differ in what their tools
 * do to debug information, but not in this. Return: whether there is one.
 */
static bool read_build_id(const char *path, uint8_t ret[BUILD_ID_BYTES])
{
	static const struct {
		ElfW(Nhdr) note;
		char name[4];
	} head = { { sizeof(head.name), BUILD_ID_BYTES, NT_GNU_BUILD_ID }, "GNU" };

	return run_find_bytes(path, &head, sizeof(head), ret, BUILD_ID_BYTES);
}

/* Two installations, such as a package and /usr/local, may be of different releases. */
static bool is_of_this_build(const char *path, char ret_ours[PATH_MAX])
{
	uint8_t theirs[BUILD_ID_BYTES], ours[BUILD_ID_BYTES];

	if (run_find_library(NULL, ret_ours))
		return true;
	return read_build_id(path, theirs) && read_build_id(ret_ours, ours) &&
	       memcmp(theirs, ours, BUILD_ID_BYTES) == 0;
}

static void check_purecms(const char *path, struct finding *finding)
{
	char ours[PATH_MAX];

	if (is_of_this_build(path, ours)) {
		found(finding, VERDICT_OK, "programs use purecm's library, %s", path);
		return;
	}
	found(finding, VERDICT_NOTE,
	      "programs use another purecm's library, %s, than this one's, %s", path, ours);
	found_remedy(finding, "Remove one of the two installations, and run ldconfig");
}

static void check_stocks(const char *path, struct finding *finding)
{
	char hidden[PATH_MAX], ours[PATH_MAX];
	size_t i;

	if (find_in_cache(hidden)) {
		found(finding, VERDICT_NOTE,
		      "programs find the stock library, %s, before purecm's, %s", path, hidden);
		found_remedy(finding,
			     getenv("LD_LIBRARY_PATH")
				     ? "unset LD_LIBRARY_PATH, or name the folder of purecm's first"
				     : "Remove the former; or name the folder of purecm's in "
				       "/etc/ld.so.conf.d/000-purecm.conf, and run ldconfig");
		return;
	}
	found(finding, VERDICT_NOTE, "programs use the stock library, %s, by default", path);
	if (run_find_library(NULL, ours) == 0)
		found_remedy(finding,
			     "purecm run -- PROGRAM; or for all programs name the folder of %s in "
			     "/etc/ld.so.conf.d/000-purecm.conf, and run ldconfig",
			     ours);
	for (i = 0; i < sizeof(module_rules) / sizeof(module_rules[0]); i++) {
		if (access(module_rules[i], F_OK))
			continue;
		found(finding, VERDICT_BAD, "which does not work, as %s bars the kernel's modules",
		      module_rules[i]);
		found_remedy(finding, "Have purecm's library used; or apt purge purecm-modules, "
				      "or remove the file, and modprobe rdma_ucm");
	}
}

void check_library(struct checkup *checkup, struct finding *finding)
{
	char path[PATH_MAX];

	(void)checkup;
	if (!find_default(path))
		found(finding, VERDICT_NOTE, "the dynamic linker finds no librdmacm.so.1");
	else if (run_is_purecm(path))
		check_purecms(path, finding);
	else
		check_stocks(path, finding);
}
