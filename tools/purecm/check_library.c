/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The check of the librdmacm.so.1 that programs get, and of the installation's consistency. Part of
 * checkup.h.
 */
#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/purecm/checkup.h"
#include "tools/purecm/run_program.h"

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

#define NOTES_BYTES    1024
#define BUILD_ID_BYTES 64

struct build_id {
	uint32_t n; /* bytes; 0: unknown */
	uint8_t bytes[BUILD_ID_BYTES];
};

static void find_build_id(const char *notes, size_t n, struct build_id *ret)
{
	const ElfW(Nhdr) * note;
	size_t at = 0, name_bytes;

	while (!ret->n && at + sizeof(*note) <= n) {
		note = (const void *)(notes + at);
		name_bytes = (note->n_namesz + 3) & ~3U;
		at += sizeof(*note) + name_bytes;
		if (at + note->n_descsz > n)
			return;
		if (note->n_type == NT_GNU_BUILD_ID && note->n_descsz <= BUILD_ID_BYTES) {
			ret->n = note->n_descsz;
			memcpy(ret->bytes, notes + at, ret->n);
		}
		at += (note->n_descsz + 3) & ~3U;
	}
}

/* Packages of one build differ in what their tools do to debug information, but not in this. */
static void read_build_id(const char *path, struct build_id *ret)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC), i;
	_Alignas(ElfW(Nhdr)) char notes[NOTES_BYTES];
	ElfW(Ehdr) head;
	ElfW(Phdr) part;
	ssize_t n;

	ret->n = 0;
	if (fd < 0)
		return;
	if (pread(fd, &head, sizeof(head), 0) != sizeof(head))
		head.e_phnum = 0;
	for (i = 0; !ret->n && i < head.e_phnum; i++) {
		if (pread(fd, &part, sizeof(part), (off_t)head.e_phoff + i * (off_t)sizeof(part)) !=
		    sizeof(part))
			break;
		if (part.p_type != PT_NOTE)
			continue;
		n = pread(fd, notes, part.p_filesz < sizeof(notes) ? part.p_filesz : sizeof(notes),
			  (off_t)part.p_offset);
		find_build_id(notes, n < 0 ? 0 : (size_t)n, ret);
	}
	close(fd);
}

/* Two installations, such as a package and /usr/local, may be of different releases. */
static bool is_of_this_build(const char *path, char ret_ours[PATH_MAX])
{
	struct build_id theirs, ours;

	if (run_find_library(NULL, ret_ours))
		return true;
	read_build_id(path, &theirs);
	read_build_id(ret_ours, &ours);
	return theirs.n == ours.n && !memcmp(theirs.bytes, ours.bytes, ours.n);
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
