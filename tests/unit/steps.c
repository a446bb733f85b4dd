/* SPDX-License-Identifier: BSD-2-Clause */
/* Counting the instructions of a function: see steps.h. */
#include "tests/unit/steps.h"
#include "tests/unit/test.h"

#include <malloc.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#define CANNOT 77

/* Most instructions of a sanitized build are the sanitizer's: there, only its reports count. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define IS_SANITIZED true
#else
#define IS_SANITIZED false
#endif

pid_t steps_begin(void (*run)(void))
{
	pid_t pid = fork();

	if (pid == 0) {
		if (IS_SANITIZED) {
			run();
			_exit(CANNOT);
		}
		if (ptrace(PTRACE_TRACEME, 0, NULL, NULL))
			_exit(CANNOT);
		mallopt(M_PERTURB, 0); /* filling memory counts an instruction a byte */
		raise(SIGSTOP);
		run();
		_exit(0);
	}
	return pid;
}

/* On one processor, a step costs a fifth of waking a process on another. */
static void stay_on_this_processor(void)
{
	cpu_set_t only;

	CPU_ZERO(&only);
	CPU_SET((size_t)sched_getcpu(), &only);
	sched_setaffinity(0, sizeof(only), &only);
}

static unsigned long count_steps(void (*run)(void))
{
	pid_t pid = steps_begin(run);
	unsigned long n = 0;
	int status;

	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	while (WIFSTOPPED(status)) {
		n++;
		ck_assert_int_eq(ptrace(PTRACE_SINGLESTEP, pid, NULL, NULL), 0);
		ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	}
	ck_assert(WIFEXITED(status));
	if (WEXITSTATUS(status) != CANNOT)
		return n;
	printf("skipped: instructions cannot be counted here\n");
	return 0;
}

/*
 * The lesser of two counts: news of the machine that arrive meanwhile, such as another test's
 * addresses, only add to one.
 */
unsigned long steps_of(void (*run)(void))
{
	unsigned long first, second;
	cpu_set_t before;

	sched_getaffinity(0, sizeof(before), &before);
	stay_on_this_processor();
	first = count_steps(run);
	second = first ? count_steps(run) : 0;
	sched_setaffinity(0, sizeof(before), &before);
	return second < first ? second : first;
}
