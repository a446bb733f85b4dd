/* SPDX-License-Identifier: BSD-2-Clause */
/* Examination of the library's and the program's files. */
#include "tools/purecm/run_program.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/purecm/command.h"

#define MARK "PURECM_LOG"

/*
 * Relative to this program's directory: as installed by a distribution beside the system's, as
 * installed otherwise, and as built.
 */
static const char *const places[] = {
	PURECM_LIB_FROM_BIN "/purecm/librdmacm.so.1",
	PURECM_LIB_FROM_BIN "/librdmacm.so.1",
	"../lib/librdmacm.so.1",
};

bool run_is_purecm(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat file;
	bool is_ours = false;
	void *bytes;

	if (fd < 0)
		return false;
	if (!fstat(fd, &file) && file.st_size > 0) {
		bytes = mmap(NULL, (size_t)file.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
		if (bytes != MAP_FAILED) {
			is_ours = memmem(bytes, (size_t)file.st_size, MARK, sizeof(MARK));
			munmap(bytes, (size_t)file.st_size);
		}
	}
	close(fd);
	return is_ours;
}

static int find_given(const char *given, char ret[PATH_MAX])
{
	if (!realpath(given, ret)) {
		complain("%s: %s", given, strerror(errno));
		return -ENOENT;
	}
	if (!run_is_purecm(ret)) {
		complain("%s is not purecm's library", given);
		return -EINVAL;
	}
	return 0;
}

int run_find_library(const char *given, char ret[PATH_MAX])
{
	char here[PATH_MAX], path[2 * PATH_MAX];
	ssize_t n;
	size_t i;

	if (given)
		return find_given(given, ret);
	n = readlink("/proc/self/exe", here, sizeof(here) - 1);
	if (n < 0)
		return -errno;
	here[n] = '\0';
	*strrchr(here, '/') = '\0';
	for (i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		if (places[i][0] == '/')
			snprintf(path, sizeof(path), "%s", places[i]);
		else
			snprintf(path, sizeof(path), "%s/%s", here, places[i]);
		if (realpath(path, ret) && run_is_purecm(ret))
			return 0;
	}
	complain("purecm's librdmacm.so.1 is not where it was installed, %s; --library FILE names "
		 "another place",
		 PURECM_LIB_FROM_BIN "/librdmacm.so.1");
	return -ENOENT;
}

/* --- the program --------------------------------------------------------- */

/* Return: an open file; -1 if execvp() would not find it either. */
static int open_program(const char *name)
{
	const char *path = getenv("PATH");
	char copy[PATH_MAX], file[2 * PATH_MAX], *folder, *rest = NULL;
	int fd = -1;

	if (strchr(name, '/') || !path)
		return open(name, O_RDONLY | O_CLOEXEC);
	snprintf(copy, sizeof(copy), "%s", path);
	for (folder = strtok_r(copy, ":", &rest); folder && fd < 0;
	     folder = strtok_r(NULL, ":", &rest)) {
		snprintf(file, sizeof(file), "%s/%s", folder, name);
		if (!access(file, X_OK))
			fd = open(file, O_RDONLY | O_CLOEXEC);
	}
	return fd;
}

/* Only files of this machine's word size are examined; scripts and others have an interpreter. */
static bool is_static(int fd)
{
	ElfW(Ehdr) elf;
	ElfW(Phdr) part;
	unsigned int i;

	if (pread(fd, &elf, sizeof(elf), 0) != (ssize_t)sizeof(elf) ||
	    memcmp(elf.e_ident, ELFMAG, SELFMAG) != 0 ||
	    elf.e_ident[EI_CLASS] != (__ELF_NATIVE_CLASS == 64 ? ELFCLASS64 : ELFCLASS32))
		return false;
	for (i = 0; i < elf.e_phnum; i++) {
		if (pread(fd, &part, sizeof(part), (off_t)(elf.e_phoff + i * sizeof(part))) !=
		    (ssize_t)sizeof(part))
			return false;
		if (part.p_type == PT_INTERP)
			return false;
	}
	return true;
}

static bool changes_user(int fd)
{
	struct stat file;

	if (fstat(fd, &file) || geteuid() == 0)
		return false;
	return file.st_mode & (S_ISUID | S_ISGID);
}

int run_check_program(const char *name)
{
	int fd = open_program(name);
	const char *why = NULL;

	if (fd < 0)
		return 0;
	if (is_static(fd))
		why = "is statically linked, so that no library can be put under it";
	else if (changes_user(fd))
		why = "is set-user-ID or set-group-ID, and takes no library from its caller";
	close(fd);
	if (why)
		complain("%s %s", name, why);
	return why ? -EINVAL : 0;
}
