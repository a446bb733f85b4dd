/* SPDX-License-Identifier: BSD-2-Clause */
/* Threads of the library: attributes that they do not inherit from the creating thread. */
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>

#include "base/cpus.h"
#include "base/thread.h"
#include "tests/unit/test.h"

static struct {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool has_run;
	void *arg;
	int policy;
	sigset_t blocked;
	cpu_set_t cpus;
} seen = { .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER };

static void *note_thread(void *arg)
{
	pthread_mutex_lock(&seen.lock);
	seen.arg = arg;
	seen.policy = sched_getscheduler(0);
	pthread_sigmask(SIG_SETMASK, NULL, &seen.blocked);
	sched_getaffinity(0, sizeof(seen.cpus), &seen.cpus);
	seen.has_run = true;
	pthread_cond_signal(&seen.changed);
	pthread_mutex_unlock(&seen.lock);
	return NULL;
}

static void run_and_note(void)
{
	seen.has_run = false;
	ck_assert_int_eq(thread_start(note_thread, &seen), 0);
	pthread_mutex_lock(&seen.lock);
	while (!seen.has_run)
		pthread_cond_wait(&seen.changed, &seen.lock);
	pthread_mutex_unlock(&seen.lock);
	ck_assert_ptr_eq(seen.arg, &seen);
}

/* Return: all CPUs of this process, one of which the calling thread is then pinned to. */
static cpu_set_t be_pinned(void)
{
	cpu_set_t all, last;
	struct cpus cpus;
	int i = CPU_SETSIZE - 1;

	ck_assert_int_eq(cpus_of_host(&cpus), 0);
	ck_assert_int_eq(sched_setaffinity(0, cpus.bytes, (cpu_set_t *)cpus.mask), 0);
	sched_getaffinity(0, sizeof(all), &all);
	while (!CPU_ISSET(i, &all))
		i--;
	CPU_ZERO(&last);
	CPU_SET(i, &last);
	ck_assert_int_eq(sched_setaffinity(0, sizeof(last), &last), 0);
	return all;
}

TEST(thread_may_use_cpus_that_its_creator_may_not)
{
	cpu_set_t all = be_pinned();

	run_and_note();
	ck_assert(CPU_EQUAL(&seen.cpus, &all));
}

TEST(thread_does_not_inherit_a_scheduling_policy)
{
	struct sched_param param = { .sched_priority = 5 };

	if (sched_setscheduler(0, SCHED_FIFO, &param)) {
		param.sched_priority = 0;
		ck_assert_int_eq(sched_setscheduler(0, SCHED_BATCH, &param), 0);
	}
	run_and_note();
	ck_assert_int_eq(seen.policy, SCHED_OTHER);
}

TEST(thread_of_the_library_blocks_signals)
{
	run_and_note();
	ck_assert_int_eq(sigismember(&seen.blocked, SIGTERM), 1);
}

/* A list as in the kernel, and the remaining ones of the first eight CPUs. */
static const struct {
	const char *list;
	unsigned long left;
} lists[] = {
	{ "", 0xff },	     { "\n", 0xff },	   { "0\n", 0xfe }, { "1-3\n", 0xf1 },
	{ "1-3,5\n", 0xd1 }, { "6-9999\n", 0x3f }, { "7-", 0xff },  { "x", 0xff },
};

TEST_LOOP(isolated_cpus_are_left_out, 0, sizeof(lists) / sizeof(lists[0]))
{
	struct cpus cpus = { .bytes = sizeof(unsigned long), .mask = { 0xff } };

	cpus_remove(&cpus, lists[_i].list);
	ck_assert_uint_eq(cpus.mask[0], lists[_i].left);
	ck_assert_uint_eq(cpus.mask[1], 0);
}
