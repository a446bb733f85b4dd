/* SPDX-License-Identifier: BSD-2-Clause */
/* A folder for the socket and the state file of the cmportd that a fuzz target runs. */
#ifndef TESTS_FUZZ_DIRECTORY_H
#define TESTS_FUZZ_DIRECTORY_H

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/**
 * clean_directory() - remove the state file of the previous input
 *
 * Return: the path of the socket, in a folder that the first call creates for this process.
 */
static inline const char *clean_directory(void)
{
	static char path[96], state[112], folder[64];

	if (!folder[0]) {
		snprintf(folder, sizeof(folder), "%s/purecm-fuzz-XXXXXX",
			 getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
		if (!mkdtemp(folder))
			abort();
		snprintf(path, sizeof(path), "%s/s", folder);
		snprintf(state, sizeof(state), "%s.state", path);
	}
	unlink(state);
	return path;
}

#endif
