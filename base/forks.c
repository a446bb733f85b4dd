/* SPDX-License-Identifier: BSD-2-Clause */
/* Counts forks: see forks.h. */
#include "base/forks.h"

#include <pthread.h>

unsigned int forks_so_far;

static void count_fork(void)
{
	forks_so_far++;
}

void forks_count(void)
{
	pthread_atfork(NULL, NULL, count_fork);
}
