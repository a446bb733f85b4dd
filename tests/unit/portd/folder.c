/* SPDX-License-Identifier: BSD-2-Clause */
/* Temporary folders and child processes: see folder.h. */
#include "tests/unit/portd/folder.h"
#include "tests/unit/test.h"

#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

char folder[64];
char socket_path[96];
char state_path[128];

/* Set in the parent: a failed test leaves its folder behind. */
static char base[TEMPORARY_BYTES];
static pid_t maker;

__attribute__((constructor)) static void make_base(void)
{
	maker = mkdtemp(name_temporary(base)) ? getpid() : 0;
}

static int remove_one(const char *path, const struct stat *stat, int type, struct FTW *ftw)
{
	(void)stat;
	(void)type;
	(void)ftw;
	return remove(path);
}

/* Check runs each test in a child, which ends by exit(). */
__attribute__((destructor)) static void remove_base(void)
{
	if (maker == getpid())
		nftw(base, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

void folder_make(void)
{
	snprintf(folder, sizeof(folder), "%s/XXXXXX", base);
	ck_assert_ptr_nonnull(mkdtemp(folder));
	snprintf(socket_path, sizeof(socket_path), "%s/s", folder);
	snprintf(state_path, sizeof(state_path), "%s.state", socket_path);
}

void limit_files(rlim_t bytes)
{
	struct rlimit limit;

	signal(SIGXFSZ, SIG_IGN);
	getrlimit(RLIMIT_FSIZE, &limit);
	limit.rlim_cur = bytes;
	setrlimit(RLIMIT_FSIZE, &limit);
}

void leave_descriptors(unsigned int n)
{
	struct rlimit limit;
	int fds[9], next;
	unsigned int i;

	for (i = 0; i <= n; i++)
		fds[i] = dup(0);
	next = fds[n];
	for (i = 0; i <= n; i++)
		close(fds[i]);
	getrlimit(RLIMIT_NOFILE, &limit);
	limit.rlim_cur = (rlim_t)next;
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

void allow_descriptors(void)
{
	struct rlimit limit;

	getrlimit(RLIMIT_NOFILE, &limit);
	limit.rlim_cur = limit.rlim_max;
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

int in_child(int (*run)(void))
{
	pid_t pid = fork();
	int status = -1;

	if (pid == 0)
		_exit(run());
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert(WIFEXITED(status));
	return WEXITSTATUS(status);
}

bool is_root(void)
{
	if (geteuid() == 0)
		return true;
	printf("skipped: only root can be somebody else too\n");
	return false;
}
