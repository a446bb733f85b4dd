/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * purecm fabric: hosts with RDMA devices on a machine that has none. Called by main.c; becomes the
 * program fabric, which was installed or built with this one (docs/fabric.md).
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/purecm/command.h"

/* From the folder of this program: as installed, and as built. */
static const char *const places[] = {
	PURECM_LIB_FROM_BIN "/purecm/fabric/fabric",
	"fabric/fabric",
};

static int find_program(char ret[2 * PATH_MAX])
{
	char here[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", here, sizeof(here) - 1);
	size_t i;

	if (n < 0)
		return -errno;
	here[n] = '\0';
	*strrchr(here, '/') = '\0';
	for (i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		if (places[i][0] == '/')
			snprintf(ret, 2 * PATH_MAX, "%s", places[i]);
		else
			snprintf(ret, 2 * PATH_MAX, "%s/%s", here, places[i]);
		if (!access(ret, X_OK))
			return 0;
	}
	complain("the soft fabric is not where it was installed, %s", places[0]);
	return -ENOENT;
}

int fabric_main(int argc, char **argv)
{
	char program[2 * PATH_MAX];

	(void)argc;
	if (find_program(program))
		return STATUS_FAILED;
	setenv("PURECM_PROGRAM", "purecm fabric", 1); /* as its usage calls it */
	execv(program, argv);
	complain("%s: %s%s", program, strerror(errno), errno == ENOENT ? "; it needs python3" : "");
	return STATUS_FAILED;
}
