/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * purecm run: runs a program with purecm's librdmacm, whatever it was linked with.
 *
 * The library is preloaded. Because it has the name that programs request, librdmacm.so.1, the
 * dynamic linker uses it before searching any path that the program was built with.
 */
#include <ctype.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/purecm/subcommand.h"

#define STATUS_CANNOT_RUN 126 /* as in shells */
#define STATUS_NOT_FOUND  127
#define ENV_BYTES	  (2 * PATH_MAX)
#define RETRIES_MAX	  254
#define SOCKETS		  "/rsocket/librspreload.so"

struct run {
	const char *library;
	const char *socket;
	const char *retries;
	const char *retry_waits;
	double deadline_s; /* 0: not given */
	bool traces, warns, is_inline, has_sockets;
	char **program;
};

static void take_program(void *input, char *name, struct argp_state *state)
{
	(void)name;
	((struct run *)input)->program = state->argv + state->next - 1;
	state->next = state->argc;
}

static void check_options(const void *input, struct argp_state *state)
{
	const struct run *run = input;
	unsigned int first, last;
	const char *text = run->retries;
	char rest;

	if (text && (text[strspn(text, "0123456789")] || sscanf(text, "%9u", &first) != 1 ||
		     first > RETRIES_MAX))
		argp_error(state, "--retries: %s is no number up to %d", text, RETRIES_MAX);
	text = run->retry_waits;
	if (text &&
	    (!isdigit((unsigned char)*text) || strpbrk(text, " +-") ||
	     sscanf(text, "%9u,%9u%c", &first, &last, &rest) != 2 || first == 0 || first > last))
		argp_error(state, "--retry-waits: %s is not FIRST,LAST in milliseconds", text);
	if (!run->program)
		argp_error(state, "which program?");
}

/* clang-format off */
static const struct command_option options[] = {
	{ "trace", 't', NULL, "every message and every change of state on standard error",
	  COMMAND_FLAG_AT(run, traces) },
	{ "warn", 'w', NULL, "on standard error what is wrong and what mends it",
	  COMMAND_FLAG_AT(run, warns) },
	{ "inline", 'i', NULL,
	  "with a cmportd of its own: the program has the ports, alone on this host",
	  COMMAND_FLAG_AT(run, is_inline) },
	{ "sockets", 0, NULL, "its TCP sockets are RDMA's where both hosts can: see rsocket(7)",
	  COMMAND_FLAG_AT(run, has_sockets) },
	{ "socket", 's', "PATH", "of the cmportd to use", COMMAND_TEXT_AT(run, socket) },
	{ "deadline", 0, "SECONDS",
	  "a peer that does not answer for so long is unreachable; 50 without it",
	  COMMAND_SECONDS_AT(run, deadline_s, 0.001, UINT32_MAX / 1000) },
	{ "retries", 0, "N",
	  "how often a request, an answer or a disconnect request is repeated; 15 without it",
	  COMMAND_TEXT_AT(run, retries) },
	{ "retry-waits", 0, "FIRST,LAST",
	  "milliseconds before the first repetition; twice as many before each further one, LAST "
	  "at most", COMMAND_TEXT_AT(run, retry_waits) },
	{ "library", 'l', "FILE", "instead of the librdmacm.so.1 installed with this",
	  COMMAND_TEXT_AT(run, library) },
	{ 0 },
};
/* clang-format on */

static const struct command_line usage = {
	.args = "-- PROGRAM [ARGUMENT...]",
	.doc = "Runs a program over purecm instead of the kernel's connection manager. The exit "
	       "status is the program's.",
	.options = options,
	.take_arg = take_program,
	.check = check_options,
	.flags = ARGP_IN_ORDER,
};

static void set_variable(const char *variable, const char *value)
{
	if (value)
		setenv(variable, value, 1);
}

static void set_variables(const struct run *run)
{
	char ms[32];

	snprintf(ms, sizeof(ms), "%.0f", run->deadline_s * 1000);
	set_variable("PURECM_LOG", run->traces ? "debug" : run->warns ? "warn" : NULL);
	set_variable("PURECM_PORTD", run->is_inline ? "inline" : NULL);
	set_variable("PURECM_SOCKET", run->socket);
	set_variable("PURECM_CONNECT_TIMEOUT_MS", run->deadline_s > 0 ? ms : NULL);
	set_variable("PURECM_RETRIES", run->retries);
	set_variable("PURECM_RETRY_WAITS_MS", run->retry_waits);
}

/* The caller's preloaded libraries follow ours. */
static int preload_library(const char *library)
{
	const char *others = getenv("LD_PRELOAD");
	char value[ENV_BYTES];
	int n;

	if (strpbrk(library, " :")) {
		complain("%s: a path with blanks or colons cannot be preloaded", library);
		return -EINVAL;
	}
	n = snprintf(value, sizeof(value), "%s%s%s", library, others && *others ? ":" : "",
		     others ? others : "");
	if (n >= (int)sizeof(value))
		return -ENAMETOOLONG;
	return setenv("LD_PRELOAD", value, 1) ? -errno : 0;
}

/* It is in a folder beside the library, or beside its links. */
static int preload_sockets(const char *library)
{
	char path[PATH_MAX + sizeof(SOCKETS)];
	const char *slash = strrchr(library, '/');

	snprintf(path, sizeof(path), "%.*s%s", slash ? (int)(slash - library) : 0, library,
		 SOCKETS);
	if (access(path, R_OK)) {
		complain("%s: %s", path, strerror(errno));
		return -ENOENT;
	}
	return preload_library(path);
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

/*
 * @name: as for execvp(). Return: 0, also if it is not found; -EINVAL, after an error message, if
 * no library can be preloaded into it.
 */
static int check_program(const char *name)
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

/* --- all of it ------------------------------------------------------------ */

int run_main(int argc, char **argv)
{
	struct run run = { .library = NULL };
	char library[PATH_MAX];
	int err;

	command_parse(&usage, argc, argv, &run);
	set_variables(&run);
	if (run_find_library(run.library, library) || preload_library(library))
		return STATUS_FAILED;
	if (run.has_sockets && preload_sockets(library))
		return STATUS_FAILED;
	if (check_program(run.program[0]))
		return STATUS_CANNOT_RUN;
	command_exec(run.program[0], run.program);
	err = errno;
	complain("%s: %s", run.program[0], strerror(err));
	return err == ENOENT ? STATUS_NOT_FOUND : STATUS_CANNOT_RUN;
}

/* --- the files of the library --------------------------------------------- */

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

bool run_find_bytes(const char *path, const void *wanted, size_t n, void *ret_after, size_t n_after)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat file = { .st_size = 0 };
	const char *bytes, *found = NULL;

	if (fd < 0)
		return false;
	fstat(fd, &file);
	bytes = mmap(NULL, (size_t)file.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	close(fd);
	if (bytes == MAP_FAILED)
		return false;
	if ((size_t)file.st_size > n_after)
		found = memmem(bytes, (size_t)file.st_size - n_after, wanted, n);
	if (found && n_after)
		memcpy(ret_after, found + n, n_after);
	munmap((void *)(uintptr_t)bytes, (size_t)file.st_size);
	return found;
}

bool run_is_purecm(const char *path)
{
	return run_find_bytes(path, MARK, sizeof(MARK), NULL, 0);
}

static int find_program_at(const char *given, char ret[PATH_MAX])
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
		return find_program_at(given, ret);
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
