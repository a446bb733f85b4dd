/* SPDX-License-Identifier: BSD-2-Clause */
/* Threads of the process, from /proc: see threads.h. */
#include "tests/unit/lib/threads.h"
#include "tests/unit/test.h"

#include <dirent.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Also true if the thread has ended. */
static bool is_asleep(const char *tid)
{
	char path[64], text[256] = "";
	const char *state;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/self/task/%.16s/stat", tid);
	file = fopen(path, "re");
	if (!file)
		return true;
	if (!fgets(text, sizeof(text), file))
		text[0] = '\0';
	fclose(file);
	state = strrchr(text, ')'); /* behind the name */
	return !state || state[2] == 'S';
}

void threads_wait_asleep(void)
{
	struct dirent *entry;
	bool all;
	DIR *dir;

	do {
		sched_yield();
		all = true;
		dir = opendir("/proc/self/task");
		ck_assert_ptr_nonnull(dir);
		while ((entry = readdir(dir)))
			if (entry->d_name[0] != '.' && atoi(entry->d_name) != gettid())
				all = all && is_asleep(entry->d_name);
		closedir(dir);
	} while (!all);
}
