/* SPDX-License-Identifier: BSD-2-Clause */
/* The test runner of check.h. */
#include "tests/machines/check.h"

#include <stdarg.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#define TCASES_MAX 1024

struct TCase {
	SFun set_up, tear_down;
	const TTest *tests[64];
	int first[64], end[64];
	int signal[64]; /* signal that must end the test, or 0 */
	unsigned int n_tests;
};

static struct TCase *tcases[TCASES_MAX];
static unsigned int n_tcases;
static const TTest *running;
static int n_run, index_run;

Suite *suite_create(const char *name)
{
	(void)name;
	return NULL;
}

void suite_add_tcase(Suite *suite, TCase *tcase)
{
	(void)suite;
	(void)tcase;
}

TCase *tcase_create(const char *name)
{
	struct TCase *tcase = calloc(1, sizeof(*tcase));

	if (!tcase || n_tcases == TCASES_MAX)
		ck_abort_msg("no room for %s", name);
	tcases[n_tcases++] = tcase;
	return tcase;
}

/* The caller limits the duration of the program. */
void tcase_set_timeout(TCase *tcase, double seconds)
{
	(void)tcase;
	(void)seconds;
}

void tcase_add_checked_fixture(TCase *tcase, SFun set_up, SFun tear_down)
{
	tcase->set_up = set_up;
	tcase->tear_down = tear_down;
}

void _tcase_add_test(TCase *tcase, const TTest *test, int signal, int status, int first, int end)
{
	if (status || tcase->n_tests == sizeof(tcase->tests) / sizeof(*tcase->tests))
		ck_abort_msg("%s needs a process of its own, or there is no room", test->name);
	tcase->tests[tcase->n_tests] = test;
	tcase->signal[tcase->n_tests] = signal;
	tcase->first[tcase->n_tests] = first;
	tcase->end[tcase->n_tests++] = end;
}

SRunner *srunner_create(Suite *suite)
{
	(void)suite;
	return NULL;
}

void srunner_add_suite(SRunner *runner, Suite *suite)
{
	(void)runner;
	(void)suite;
}

static void run(const TCase *tcase, const TTest *test, int i)
{
	running = test;
	index_run = i;
	if (tcase->set_up)
		tcase->set_up();
	test->fn(i);
	if (tcase->tear_down)
		tcase->tear_down();
	n_run++;
}

/* Runs the test in a process of its own. */
static void run_to_signal(const TCase *tcase, const TTest *test, int i, int signal)
{
	int status = 0;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (pid == 0) {
		run(tcase, test, i);
		_exit(EXIT_SUCCESS);
	}
	running = test;
	if (pid < 0 || waitpid(pid, &status, 0) != pid || !WIFSIGNALED(status) ||
	    WTERMSIG(status) != signal)
		ck_abort_msg("not ended by signal %d, but with %#x", signal, status);
	n_run++;
}

static void run_as_wanted(const TCase *tcase, unsigned int number, int i)
{
	if (tcase->signal[number])
		run_to_signal(tcase, tcase->tests[number], i, tcase->signal[number]);
	else
		run(tcase, tcase->tests[number], i);
}

void srunner_run_all(SRunner *runner, enum print_output output)
{
	unsigned int i, j;
	int k;

	(void)runner;
	(void)output;
	for (i = 0; i < n_tcases; i++)
		for (j = 0; j < tcases[i]->n_tests; j++)
			for (k = tcases[i]->first[j]; k < tcases[i]->end[j]; k++)
				run_as_wanted(tcases[i], j, k);
	printf("100%%: Checks: %d, Failures: 0, Errors: 0\n", n_run);
}

int srunner_ntests_run(SRunner *runner)
{
	(void)runner;
	return n_run;
}

int srunner_ntests_failed(SRunner *runner)
{
	(void)runner;
	return 0;
}

void srunner_free(SRunner *runner)
{
	(void)runner;
	while (n_tcases)
		free(tcases[--n_tcases]);
}

void check_failed(const char *file, int line, const char *format, ...)
{
	va_list args;

	printf("0%%: Checks: %d, Failures: 1, Errors: 0\n%s:%d:F:%s:%d: ", n_run + 1, file, line,
	       running ? running->name : "main", index_run);
	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	printf("\n");
	fflush(stdout);
	exit(EXIT_FAILURE);
}
