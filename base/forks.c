/* SPDX-License-Identifier: BSD-2-Clause */
/* Counts forks, and registers handlers: see forks.h. */
#include "base/forks.h"

#include <pthread.h>
#include <stdlib.h>

unsigned int forks_so_far;

static void count_fork(void)
{
	forks_so_far++;
}

void forks_count(void)
{
	pthread_atfork(NULL, NULL, count_fork);
}

void forks_watch(void (*before)(void), void (*in_parent)(void), void (*in_child)(void))
{
	void *volatile first = malloc(1); /* not optimized away */

	free(first);
	pthread_atfork(before, in_parent, in_child);
}
