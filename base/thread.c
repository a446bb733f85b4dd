/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Threads: see thread.h.
 */
#include "base/thread.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>

#include "base/cpus.h"

static int create_thread(void *(*run)(void *), void *arg, bool is_own)
{
	const struct sched_param param = { .sched_priority = 0 };
	pthread_attr_t attr;
	pthread_t thread;
	struct cpus cpus;
	int err;

	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	if (is_own) {
		pthread_attr_setinheritsched(&attr, PTHREAD_EXPLICIT_SCHED);
		pthread_attr_setschedpolicy(&attr, SCHED_OTHER);
		pthread_attr_setschedparam(&attr, &param);
		if (!cpus_of_host(&cpus))
			pthread_attr_setaffinity_np(&attr, cpus.bytes, (cpu_set_t *)cpus.mask);
	}
	err = pthread_create(&thread, &attr, run, arg);
	pthread_attr_destroy(&attr);
	return -err;
}

/* Signals belong to the program. */
int thread_start(void *(*run)(void *), void *arg)
{
	sigset_t all, before;
	int err;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	err = create_thread(run, arg, true);
	if (err == -EPERM || err == -EINVAL || err == -ENOSYS)
		err = create_thread(run, arg, false);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return err;
}
